// SPDX-License-Identifier: Apache-2.0
// The examples that --help prints are run. One that needs a file of the user's own may only miss
// that.
#include "support/catch.h"

#include <array>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/effort.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/test_cases.h"

namespace trainyard {
namespace {

constexpr std::string_view kProgram = "  trainyard ";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream input(text);
  for (std::string line; std::getline(input, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> commands(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const std::string& line : lines_of(run_program({"--help"}, folder).output)) {
    if (line.starts_with("Every command")) {
      break;
    }
    if (line.starts_with(kProgram)) {
      std::string name = line.substr(kProgram.size());
      names.push_back(name.substr(0, name.find(' ')));
    }
  }
  return names;
}

std::vector<std::string> examples_of_help(const std::string& command,
                                          const std::filesystem::path& folder) {
  std::vector<std::string> examples;
  bool is_example = false;
  bool continues = false;
  for (const std::string& line : lines_of(run_program({command, "--help"}, folder).output)) {
    is_example = is_example || line.starts_with("Example");
    if (is_example && continues) {
      examples.back() += "\n" + line;
    } else if (is_example && line.starts_with(kProgram)) {
      examples.push_back(line.substr(2));
    }
    continues = is_example && line.ends_with('\\');
  }
  return examples;
}

bool misses_a_file(const std::string& error) {
  constexpr std::array<std::string_view, 4> kTexts{"cannot be read", "found no such file",
                                                   "found nothing", "No such file"};
  for (const std::string_view text : kTexts) {
    if (error.find(text) != std::string::npos) {
      return true;
    }
  }
  return false;
}

void run_examples(const std::string& command) {
  const ScratchFolder folder;
  const std::vector<std::string> examples = examples_of_help(command, folder.path());
  REQUIRE(!examples.empty());
  for (const std::string& example : examples) {
    // Minutes, for ever, or a program that may not be there.
    if (kIsSanitized || command == "validate" || command == "serve" ||
        example.find('|') != std::string::npos) {
      continue;
    }
    INFO(example);
    const ProgramResult result = run_shell(example, folder.path());
    INFO(result.error);
    REQUIRE((result.status == 0 || (result.status == 2 && misses_a_file(result.error))));
  }
}

const std::vector<std::string>& all_commands() {
  static const std::vector<std::string> names{
      "collective", "step",     "search", "explain", "compare",  "cost",     "jobs",
      "plan",       "doctor",   "sweep",  "traffic", "transfer", "topology", "import",
      "calibrate",  "validate", "check",  "parts",   "serve"};
  return names;
}

const TestCases kHelp("the examples of --help run, but for files that are the user's", "[golden]",
                      all_commands(), run_examples);

}  // namespace

TEST_CASE("each command that the program names has its examples run", "[golden]") {
  const ScratchFolder folder;
  REQUIRE(commands(folder.path()) == all_commands());
}

}  // namespace trainyard
