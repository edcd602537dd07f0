// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/effects.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/commands.h"
#include "support/program.h"

namespace trainyard {
namespace {

Command command_named(std::string_view name) {
  const std::vector<Command> commands = all_commands();
  return *std::ranges::find(commands, name, &Command::name);
}

// The words of a line, the first of which is the command.
std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

// The notes of a line on things without effect.
std::set<std::string> idle_in(const std::string& line) {
  std::vector<std::string> words = words_of(line);
  const Command command = command_named(words.front());
  words.erase(words.begin());
  words.insert(words.end(), {"--effects", "on", "--format", "json", "--log-level", "off"});
  std::ostringstream out;
  (void)run_command(command, words, out);
  std::set<std::string> idle;
  const auto json = nlohmann::json::parse(out.str());
  for (const auto& note : json["notes"]) {
    const auto text = note.get<std::string>();
    if (const std::size_t end = text.find(" did not change the result"); end != text.npos) {
      idle.insert(text.substr(0, end));
    }
  }
  return idle;
}

using Idle = std::set<std::string>;

}  // namespace

TEST_CASE("what was given and did not change the result is named", "[effects]") {
  const std::string collective = "collective all_reduce --cluster dgx-h100 -b 1M -e 1M ";
  SECTION("options, variables and keys of collectives") {
    REQUIRE(idle_in(collective + "--nodes 2 --seed 3") == Idle{"--seed 3"});
    REQUIRE(idle_in("collective all_reduce --cluster hgx-h100-clos --nodes 2 -b 1M -e 1M "
                    "--set fabric.oversubscription=4") == Idle{"--set fabric.oversubscription=4"});
    REQUIRE(idle_in(collective + "--nodes 2 --env NCCL_IB_HCA=mlx5")
                .contains("--env NCCL_IB_HCA=mlx5"));
  }
  SECTION("channels under NVLSTree") {
    const Idle idle = idle_in(
        "collective all_reduce --cluster dgx-h100 --nodes 2 -b 64M -e 64M --algo nvlstree "
        "--env NCCL_MAX_NCHANNELS=8");
    REQUIRE(idle.contains("--env NCCL_MAX_NCHANNELS=8"));
  }
  SECTION("one pair, all at once") {
    REQUIRE(idle_in("transfer --cluster dgx-h100 --from server0/gpu0 --to server0/gpu1 "
                    "--all-at-once") == Idle{"--all-at-once"});
  }
}

TEST_CASE("things given are options, each value of one that repeats", "[effects]") {
  const OptionReader reader = parse_options(
      command_named("collective"),
      std::vector<std::string>{"all_reduce", "--cluster", "dgx-h100", "--set", "server.nics=4",
                               "--set", "name=x", "--format", "json", "--threads", "2"});
  std::vector<std::string> texts;
  for (const GivenThing& thing : given_things(reader)) {
    texts.push_back(thing.text);
    REQUIRE_FALSE(thing.others.contains("format"));
    REQUIRE(thing.others.at("threads").front() == "2");
  }
  REQUIRE(texts ==
          std::vector<std::string>{"--cluster dgx-h100", "--set server.nics=4", "--set name=x"});
}

TEST_CASE("every command with --format and a document looks for what has no effect", "[effects]") {
  for (const Command& command : all_commands()) {
    // They write no document: others look at rows, at files, or check what runs.
    const Idle without{"sweep", "topology", "import", "validate", "check"};
    for (const Command& part : command.parts.empty() ? std::vector{command} : command.parts) {
      INFO(part.form);
      REQUIRE((part.find("effects") != nullptr) != without.contains(std::string(part.name)));
    }
  }
}

}  // namespace trainyard
