// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "api/call.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "sim/host/run_host.h"

namespace trainyard {
namespace {

CallOutcome call(const std::vector<std::string>& words) {
  return run_call(words, {});
}

}  // namespace

TEST_CASE("a call leaves no host behind, whether it ends well or not") {
  REQUIRE(call({"parts"}).status == 0);
  REQUIRE(run_host() == nullptr);
  REQUIRE_THROWS_AS(call({"part"}), ConfigError);
  REQUIRE(run_host() == nullptr);
}

TEST_CASE("the rows of calls are those of the tables of options") {
  const std::vector<CallCommand> rows = call_commands();
  std::vector<std::string> names;
  for (const CallCommand& row : rows) {
    names.push_back(row.name);
  }
  for (const Command& command : all_commands()) {
    INFO(command.name);
    if (command.parts.empty()) {
      const auto row = std::ranges::find(rows, command.name, &CallCommand::name);
      REQUIRE(row != rows.end());
      REQUIRE(row->options.size() == command.arguments.size() + command.options.size());
    }
  }
  REQUIRE(std::ranges::count(names, "explain step") == 1);
  REQUIRE(std::ranges::count(names, "explain collective") == 1);
  const auto step = std::ranges::find(rows, "step", &CallCommand::name);
  const auto format = std::ranges::find(step->options, "format", &CallOption::name);
  REQUIRE(format->choices == std::vector<std::string>{"table", "csv", "json"});
  REQUIRE(std::ranges::find(step->options, "set", &CallOption::name)->repeats);
}

TEST_CASE("a path that cannot be used is the user's, as for the program") {
  REQUIRE_THROWS_AS(call({"topology", "--cluster", "dgx-h100", "--output", "/proc/none/x"}),
                    ConfigError);
}

}  // namespace trainyard
