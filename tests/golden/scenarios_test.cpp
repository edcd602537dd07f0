// SPDX-License-Identifier: Apache-2.0
// Each NAME.args is a command line, NAME.expected what it prints: two runs in this process and one
// in a process of its own must give these bytes. UPDATE_GOLDEN=1 rewrites the expectations.
#include "support/catch.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "cli/calibrate.h"
#include "cli/collective.h"
#include "cli/plan.h"
#include "cli/step.h"
#include "cli/topology.h"
#include "cli/traffic.h"
#include "cli/transfer.h"
#include "support/effort.h"
#include "support/program.h"

namespace trainyard {
namespace {

constexpr std::ptrdiff_t kMostLines = 48;

std::vector<std::filesystem::path> scenarios() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(TRAINYARD_SOURCE_DIR) / "tests/golden")) {
    if (entry.path().extension() == ".args") {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

// Split at blanks and ends of lines; no quotes.
std::vector<std::string> arguments_of(const std::filesystem::path& file) {
  std::istringstream stream(read_text_file(file));
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string run_here(std::vector<std::string> arguments) {
  const std::string command = arguments.front();
  arguments.erase(arguments.begin());
  std::ostringstream out;
  const auto run = command == "topology"    ? run_topology
                   : command == "calibrate" ? run_calibrate
                   : command == "transfer"  ? run_transfer
                   : command == "plan"      ? run_plan
                   : command == "step"      ? run_step
                   : command == "traffic"   ? run_traffic_command
                                            : run_collective_command;
  const int status = run(arguments, out);
  REQUIRE(status == 0);
  return out.str();
}

}  // namespace

TEST_CASE("every scenario prints what is expected, in every run", "[golden]") {
  const bool update = std::getenv("UPDATE_GOLDEN") != nullptr;
  REQUIRE(scenarios().size() >= 10);
  for (const std::filesystem::path& file : scenarios()) {
    INFO(file.filename().string());
    const std::vector<std::string> arguments = arguments_of(file);
    const ProgramResult fresh = run_program(arguments, TRAINYARD_SOURCE_DIR);
    REQUIRE(fresh.error.empty());
    REQUIRE(fresh.status == 0);
    std::filesystem::path expected = file;
    expected.replace_extension(".expected");
    if (update) {
      std::ofstream(expected, std::ios::binary) << fresh.output;
    }
    REQUIRE(fresh.output == read_text_file(expected));
    // Twice: the second run finds what the first one left.
    for (int run = 0; run < (kIsSanitized ? 1 : 2); ++run) {
      REQUIRE(run_here(arguments) == fresh.output);
    }
    REQUIRE(std::count(fresh.output.begin(), fresh.output.end(), '\n') <= kMostLines);
  }
}

}  // namespace trainyard
