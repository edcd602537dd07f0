// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/log.h"

#include <string>
#include <vector>

#include "sim/config_error.h"

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

}  // namespace trainyard
