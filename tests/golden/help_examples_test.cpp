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

}  // namespace

TEST_CASE("the examples of every --help run, but for files that are the user's", "[golden]") {
  const ScratchFolder folder;
  const std::vector<std::string> names = commands(folder.path());
  REQUIRE(names.size() > 15);
  int run = 0;
  for (const std::string& name : names) {
    const std::vector<std::string> examples = examples_of_help(name, folder.path());
    INFO(name);
    REQUIRE(!examples.empty());
    for (const std::string& example : examples) {
      // Minutes, or a program that may not be there.
      if (kIsSanitized || name == "validate" || example.find('|') != std::string::npos) {
        continue;
      }
      INFO(example);
      const ProgramResult result = run_shell(example, folder.path());
      INFO(result.error);
      const bool misses = result.status == 2 && misses_a_file(result.error);
      REQUIRE((result.status == 0 || misses));
      run += misses ? 0 : 1;
    }
  }
  REQUIRE((kIsSanitized || run > 25));
}

}  // namespace trainyard
