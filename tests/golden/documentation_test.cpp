// SPDX-License-Identifier: Apache-2.0
// The examples of README.md and docs/ are run. In a block marked `console` whose first line begins
// with "$ trainyard" or "$ docs/studies/run", every line that begins with "$ " is a command,
// continued after a backslash; the lines after it, if any, are what it prints, else it only has to
// succeed. UPDATE_GOLDEN=1 rewrites those lines.
#include "support/catch.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "support/effort.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/test_cases.h"

namespace trainyard {
namespace {

const std::filesystem::path kRoot = source_dir();

struct Example {
  std::string place;  // "FILE:LINE".
  std::string command;
  std::string output;
};

bool starts_with(const std::string& line, const std::string& start) {
  return line.rfind(start, 0) == 0;
}

// `lines` from `first` to the end of the block; moves `first` there.
std::vector<Example> block_examples(const std::string& name, const std::vector<std::string>& lines,
                                    std::size_t& first) {
  std::vector<Example> examples;
  bool continued = false;
  for (; first < lines.size() && !starts_with(lines[first], "```"); ++first) {
    const std::string& line = lines[first];
    if (continued) {
      examples.back().command += "\n" + line;
    } else if (starts_with(line, "$ ")) {
      examples.push_back({name + ":" + std::to_string(first + 1), line.substr(2), ""});
    } else {
      examples.back().output += line + "\n";
    }
    const bool in_command = continued || starts_with(line, "$ ");
    continued = in_command && !line.empty() && line.back() == '\\';
  }
  return examples;
}

std::vector<Example> examples_of(const std::string& name, const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  std::vector<Example> examples;
  for (std::size_t index = 0; index + 1 < lines.size(); ++index) {
    if (lines[index] == "```console" && (starts_with(lines[index + 1], "$ trainyard") ||
                                         starts_with(lines[index + 1], "$ docs/studies/run "))) {
      const std::vector<Example> block = block_examples(name, lines, ++index);
      examples.insert(examples.end(), block.begin(), block.end());
    }
  }
  return examples;
}

void rewrite(const std::filesystem::path& page, const Example& example, const std::string& output) {
  std::string text = read_text_file(page);
  const std::string old = example.command + "\n" + example.output;
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  text.replace(at, old.size(), example.command + "\n" + output);
  std::ofstream(page, std::ios::binary) << text;
}

// The pages in a folder and those in it, by their paths from the root, in order.
std::vector<std::string> pages_of(const std::string& folder) {
  std::vector<std::string> pages;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_dir() / folder)) {
    if (entry.path().extension() == ".md") {
      pages.push_back(entry.path().lexically_relative(source_dir()).string());
    }
  }
  std::ranges::sort(pages);
  return pages;
}

bool is_study(const std::string& page) {
  return starts_with(page, "docs/studies/") && !page.ends_with("README.md");
}

std::vector<std::string> pages_with_examples() {
  std::vector<std::string> pages{"README.md"};
  for (const std::string& page : pages_of("docs")) {
    const std::string name = std::filesystem::path(page).filename().string();
    if (!is_study(page) && !examples_of(name, read_text_file(source_dir() / page)).empty()) {
      pages.push_back(page);
    }
  }
  return pages;
}

std::vector<std::string> studies() {
  std::vector<std::string> pages = pages_of("docs/studies");
  std::erase_if(pages, [](const std::string& page) { return !is_study(page); });
  return pages;
}

// Runs the examples of a page; how many of them say what they print.
int compare_examples(const std::filesystem::path& page) {
  // Examples name files of the repository, and may write files of their own.
  const ScratchFolder folder;
  for (const std::string name : {"configs", "docs", "tests", "tools", "validation"}) {
    std::filesystem::create_directory_symlink(kRoot / name, folder.path() / name);
  }
  const bool update = std::getenv("UPDATE_GOLDEN") != nullptr;
  int compared = 0;
  for (Example& example : examples_of(page.filename().string(), read_text_file(page))) {
    INFO(example.place << ": " << example.command);
    const ProgramResult result = run_shell(example.command, folder.path());
    REQUIRE(result.error.empty());
    REQUIRE(result.status == 0);
    if (!example.output.empty()) {
      if (update && result.output != example.output) {
        rewrite(page, example, result.output);
        example.output = result.output;
      }
      REQUIRE(result.output == example.output);
      ++compared;
    }
  }
  return compared;
}

// Minutes under sanitizers, for which shorter tests run all commands that are in use here.
void compare_page(const std::string& page) {
  REQUIRE(((kIsSanitized && page != "README.md") || compare_examples(kRoot / page) >= 0));
}

void compare_study(const std::string& page) {
  REQUIRE(std::filesystem::exists((kRoot / page).replace_extension(".sh")));
  REQUIRE((kIsSanitized || compare_examples(kRoot / page) == 1));
}

const TestCases kPages("examples of a page print what it says", "[golden]", pages_with_examples(),
                       compare_page);
const TestCases kStudies("a worked study prints what its page says", "[golden][studies]", studies(),
                         compare_study);

}  // namespace

TEST_CASE("examples are told from other blocks, commands from their output") {
  const std::vector<Example> examples = examples_of("a.md",
                                                    "```console\n$ other\n```\n"
                                                    "```\n$ trainyard no\n```\n"
                                                    "```console\n"
                                                    "$ trainyard one \\\n  more\nfirst\n\nlast\n"
                                                    "$ trainyard two\n```\ntext\n");
  REQUIRE(examples.size() == 2);
  REQUIRE(examples[0].place == "a.md:8");
  REQUIRE(examples[0].command == "trainyard one \\\n  more");
  REQUIRE(examples[0].output == "first\n\nlast\n");
  REQUIRE(examples[1].command == "trainyard two");
  REQUIRE(examples[1].output.empty());
}

TEST_CASE("pages have examples, and there are studies", "[golden]") {
  REQUIRE(pages_with_examples().size() > 10);
  REQUIRE(studies().size() >= 9);
}

TEST_CASE("each figure of a study is on a page and not too large", "[golden][studies]") {
  std::string pages;
  for (const std::string& page : pages_of("docs/studies")) {
    pages += read_text_file(kRoot / page);
  }
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "docs/figures")) {
    const std::string name = entry.path().filename().string();
    if (starts_with(name, "study-")) {
      INFO(name);
      REQUIRE(pages.find("../figures/" + name) != std::string::npos);
      REQUIRE(std::filesystem::file_size(entry.path()) < 100'000);
    }
  }
}

TEST_CASE("the map of the documentation links to every page", "[text]") {
  const std::string map = read_text_file(kRoot / "docs/README.md");
  for (const std::string& page : pages_of("docs")) {
    INFO(page);
    REQUIRE((page == "docs/README.md" ||
             map.find("](" + page.substr(std::string("docs/").size()) + ")") != std::string::npos));
  }
}

TEST_CASE("the pages about commands name every option") {
  const auto require_named = [](const char* page, const Command& command) {
    const std::string text = read_text_file(kRoot / "docs" / page);
    for (const Option& option : command.options) {
      INFO(page << ": " << option.name);
      REQUIRE(text.find("`--" + std::string(option.name)) != std::string::npos);
    }
  };
  require_named("commands/collective.md", collective_command());
  require_named("commands/plan.md", plan_command());
  require_named("commands/cost.md", cost_command());
  require_named("commands/search.md", search_command());
  require_named("commands/serve.md", serve_command());
  require_named("models/step.md", step_command());
  require_named("commands/traffic.md", traffic_command());
  require_named("inputs/parts.md", parts_command());
  require_named("commands/validate.md", validate_command());
}

}  // namespace trainyard
