// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/log.h"

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {
namespace {

spdlog::level::level_enum level_of(const std::vector<std::string>& arguments) {
  const Command command{.name = "test", .options = log_options()};
  return make_logger(parse_options(command, arguments)).level();
}

}  // namespace

TEST_CASE("only warnings are logged unless another level is chosen") {
  REQUIRE(level_of({}) == spdlog::level::warn);
  REQUIRE(level_of({"--log-level", "off"}) == spdlog::level::off);
  REQUIRE(level_of({"--log-level", "warn"}) == spdlog::level::warn);
  REQUIRE(level_of({"--log-level", "info"}) == spdlog::level::info);
  REQUIRE(level_of({"--log-level", "debug"}) == spdlog::level::debug);
  REQUIRE_THROWS_WITH(level_of({"--log-level", "verbose"}),
                      "--log-level: expected warn, off, info or debug, found \"verbose\"");
}

TEST_CASE("a line of the log is short, whatever it quotes") {
  const ScratchFolder folder;
  const std::filesystem::path deep = std::string(200, 'a') + "/" + std::string(200, 'b');
  std::filesystem::create_directories(folder.path() / deep);
  // A link that loses packets is remarked.
  const std::string file =
      folder.write((deep / "t.txt").string(), "3 1 2\n1\n0 1 1Gbps 1us 0.5\n2 1 1Gbps 1us 0\n")
          .string();
  const ProgramResult result =
      run_program({"import", file, "--gpu", "H100-SXM", "--output", "/dev/null"}, folder.path());
  REQUIRE(result.status == 0);
  std::istringstream lines(result.error);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    REQUIRE(line.size() < 400);
    REQUIRE(line.starts_with("trainyard: warning: "));
    REQUIRE(line.find(" ... ") != std::string::npos);
  }
  REQUIRE(count == 2);
  REQUIRE(result.error.ends_with("1 of 2 links lose packets in the file, and none does here.\n"));
}

}  // namespace trainyard
