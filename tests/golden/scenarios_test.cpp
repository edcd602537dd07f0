// SPDX-License-Identifier: Apache-2.0
// Each NAME.args is a command line, NAME.expected what it prints: two runs in this process and one
// in a process of its own must give these bytes. UPDATE_GOLDEN=1 rewrites the expectations.
#include "support/catch.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
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

constexpr std::ptrdiff_t kMaxLines = 50;

std::vector<std::string> scenarios() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "tests/golden")) {
    if (entry.path().extension() == ".args") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

// Split at blanks and ends of lines; no quotes.
std::vector<std::string> arguments_of(const std::filesystem::path& file) {
  std::istringstream stream(read_text_file(file));
  return {std::istream_iterator<std::string>(stream), {}};
}

// Makes it the working folder for as long as this lives.
class FolderForNow {
 public:
  explicit FolderForNow(const std::filesystem::path& folder) {
    std::filesystem::current_path(folder);
  }
  FolderForNow(const FolderForNow&) = delete;
  FolderForNow& operator=(const FolderForNow&) = delete;
  ~FolderForNow() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
};

std::string run_here(std::vector<std::string> arguments, int expected_status) {
  const std::vector<Command> commands = all_commands();
  const auto command = std::ranges::find(commands, arguments.front(), &Command::name);
  REQUIRE(command != commands.end());
  arguments.erase(arguments.begin());
  std::ostringstream out;
  const FolderForNow here(source_dir());
  const int status = run_command(*command, arguments, out);
  REQUIRE(status == expected_status);
  return out.str();
}

void compare_scenario(const std::string& name) {
  const std::filesystem::path expected = source_dir() / "tests/golden" / (name + ".expected");
  const std::vector<std::string> arguments =
      arguments_of(source_dir() / "tests/golden" / (name + ".args"));
  const ProgramResult fresh = run_program(arguments, source_dir());
  REQUIRE(fresh.error.empty());
  // That is how a doctor says that a log is not normal.
  const int status = name.starts_with("doctor_ill") ? 1 : 0;
  REQUIRE(fresh.status == status);
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(expected, std::ios::binary) << fresh.output;
  }
  REQUIRE(fresh.output == read_text_file(expected));
  // Twice: the second run finds what the first one left. Sanitizers were in the program already.
  for (int run = 0; run < (kIsSanitized ? 0 : 2); ++run) {
    REQUIRE(run_here(arguments, status) == fresh.output);
  }
  REQUIRE(std::count(fresh.output.begin(), fresh.output.end(), '\n') <= kMaxLines);
}

const TestCases kScenarios("prints what is expected, in every run", "[golden]", scenarios(),
                           compare_scenario);

}  // namespace

TEST_CASE("there are scenarios", "[golden]") {
  REQUIRE(scenarios().size() >= 10);
}

}  // namespace trainyard
