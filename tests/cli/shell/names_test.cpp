// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/shell/names.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/commands.h"

namespace trainyard {
namespace {

std::vector<std::string> values(const Command& command, std::string_view lists,
                                std::string_view typed) {
  std::vector<std::string> texts;
  for (const NextWord& each : named_values(command, lists, typed)) {
    texts.push_back(each.text);
  }
  return texts;
}

bool offers(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

TEST_CASE("each list that an option names holds something") {
  std::vector<Command> commands = all_commands();
  for (std::size_t index = 0; index < commands.size(); ++index) {
    const Command command = commands[index];
    commands.insert(commands.end(), command.parts.begin(), command.parts.end());
    for (const Option& row : joined({command.arguments, command.options})) {
      std::string_view lists = row.traits.names;
      while (!lists.empty()) {
        const std::size_t end = std::min(lists.find(' '), lists.size());
        INFO(command.form << " " << row.name << ": " << lists.substr(0, end));
        REQUIRE_FALSE(values(command, lists.substr(0, end), "").empty());
        lists.remove_prefix(std::min(end + 1, lists.size()));
      }
    }
  }
}

TEST_CASE("keys of settings are offered piece by piece, with what they mean") {
  const std::vector<std::string> all = values(topology_command(), "cluster-keys", "");
  REQUIRE(offers(all, "fabric."));
  REQUIRE(offers(all, "nodes="));
  REQUIRE(offers(all, "nic="));
  REQUIRE_FALSE(offers(all, "fabric.routing="));
  REQUIRE_FALSE(offers(all, "batch."));
  REQUIRE(values(topology_command(), "cluster-keys", "fabric.rout") ==
          std::vector<std::string>{"fabric.routing=", "fabric.routing_seed="});
  REQUIRE(named_values(topology_command(), "cluster-keys", "fabric.rout").front().help ==
          "How paths are chosen.");
  REQUIRE(offers(values(step_command(), "cluster-keys", "batch."), "batch.global="));
  REQUIRE(offers(values(traffic_command(), "traffic-keys", "groups.0."), "groups.0.load="));
}

TEST_CASE("values of keys are offered where they are words or parts") {
  const std::vector<std::string> ways =
      values(topology_command(), "cluster-keys", "fabric.routing=");
  REQUIRE(ways.front() == "fabric.routing=ecmp");
  REQUIRE(values(topology_command(), "cluster-keys", "pxn=") ==
          std::vector<std::string>{"pxn=true", "pxn=false"});
  REQUIRE(offers(values(topology_command(), "cluster-keys", "nic="), "nic=ConnectX-7"));
  REQUIRE(values(topology_command(), "cluster-keys", "nodes=").empty());
  REQUIRE(values(topology_command(), "cluster-keys", "no_key=").empty());
}

TEST_CASE("variables of NCCL are offered with their equals sign") {
  REQUIRE(offers(values(plan_command(), "nccl-variables", ""), "NCCL_ALGO="));
  REQUIRE_FALSE(offers(values(plan_command(), "nccl-variables", ""), "NCCL_DEBUG="));
}

}  // namespace trainyard
