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

// The notes of a line.
std::vector<std::string> notes_in(const std::string& line, const std::string& effects) {
  std::vector<std::string> words = words_of(line);
  const Command command = command_named(words.front());
  words.erase(words.begin());
  words.insert(words.end(), {"--effects", effects, "--format", "json", "--log-level", "off"});
  std::ostringstream out;
  (void)run_command(command, words, out);
  return nlohmann::json::parse(out.str())["notes"].get<std::vector<std::string>>();
}

// The things that a line names as without effect.
std::set<std::string> idle_in(const std::string& line, const std::string& effects = "on") {
  std::set<std::string> idle;
  const std::string start = "without effect: ";
  for (std::string text : notes_in(line, effects)) {
    if (!text.starts_with(start) || text.find("; ") != text.npos) {
      continue;
    }
    text.erase(0, start.size());
    for (std::size_t comma = text.find(", "); comma != text.npos; comma = text.find(", ")) {
      idle.insert(text.substr(0, comma));
      text.erase(0, comma + 2);
    }
    idle.insert(text);
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
    REQUIRE(idle_in("collective all_reduce --cluster dgx-h100 --nodes 2 -b 64M -e 64M "
                    "--algo nvlstree --channels 4")
                .contains("--channels 4"));
  }
  SECTION("imbalance of experts that all are on every rank") {
    REQUIRE(idle_in("step --workload mixtral-8x7b --cluster dgx-h100 --nodes 4 "
                    "--set plan.expert=1 --set routing.imbalance=1.5")
                .contains("--set routing.imbalance=1.5"));
  }
  SECTION("one pair, all at once") {
    REQUIRE(idle_in("transfer --cluster dgx-h100 --from server0/gpu0 --to server0/gpu1 "
                    "--all-at-once") == Idle{"--all-at-once"});
  }
}

TEST_CASE("what changes the result is not named", "[effects]") {
  const std::string line = GENERATE(
      "transfer --cluster dgx-h100 --from server0/gpu0 --to server1/gpu1 --fidelity packet "
      "--mtu 1024",
      "collective all_reduce --cluster dgx-h100 -b 1M -e 1M --nodes 3 --runtime plain --algo ring "
      "--fidelity analytical --set server.nics=4",
      "step --workload llama-3-8b --cluster dgx-h100 --nodes 2 --set plan.recompute=selective "
      "--set batch.micro=2");
  REQUIRE(idle_in(line).empty());
}

TEST_CASE("keys of the user's own cluster file are named with their line", "[effects]") {
  const ScratchFolder folder;
  const std::string file = folder
                               .write("mine.yaml",
                                      "name: mine\n"
                                      "source: a test\n"
                                      "nodes: 2\n"
                                      "server: hgx-h100\n"
                                      "fabric:\n"
                                      "  template: clos\n"
                                      "  leaf: Spectrum4-SN5400\n"
                                      "  spine: Spectrum4-SN5400\n"
                                      "  oversubscription: 4\n"
                                      "  cable: 10 m\n"
                                      "  routing: ecmp\n")
                               .string();
  const std::string line = "collective all_reduce -b 1M -e 1M --cluster " + file;
  const Idle idle = idle_in(line);
  REQUIRE(idle.contains(file + ":9: fabric.oversubscription"));
  for (const char* needed : {":3: nodes", ":4: server", ":6: fabric.template"}) {
    REQUIRE_FALSE(idle.contains(file + needed));
  }
  REQUIRE(idle_in(line, "auto").empty());
}

TEST_CASE("keys of the user's own model and traffic are named with their line", "[effects]") {
  const ScratchFolder folder;
  const std::string model = folder
                                .write("mine.yaml",
                                       "title: mine\n"
                                       "source: a test\n"
                                       "hidden: 1024\n"
                                       "vocabulary: 32000\n"
                                       "norm: rms\n"
                                       "layers:\n"
                                       "  - count: 4\n"
                                       "    attention: {kind: grouped, heads: 8, head_size: 128}\n"
                                       "    feed_forward: {size: 4096, gated: true}\n")
                                .string();
  const Idle of_model = idle_in("step --cluster dgx-h100 --nodes 1 --model " + model);
  REQUIRE(of_model.contains(model + ":5: norm"));
  REQUIRE_FALSE(of_model.contains(model + ":9: layers.0.feed_forward.size"));
  const std::string traffic = folder
                                  .write("flows.yaml",
                                         "name: flows\n"
                                         "seed: 3\n"
                                         "groups:\n"
                                         "  - name: both\n"
                                         "    kind: alltoall\n"
                                         "    endpoints: [server0/nic0, server1/nic0]\n"
                                         "    size: 1 MB\n"
                                         "    start: 0 us\n")
                                  .string();
  REQUIRE(idle_in("traffic " + traffic + " --cluster fat-tree-k8-100g") ==
          Idle{traffic + ":2: seed", traffic + ":8: groups.0.start"});
}

TEST_CASE("runs are added where they are few and small by count", "[effects]") {
  const std::string collective = "collective all_reduce --cluster dgx-h100 --nodes 2 -b 1M -e 1M ";
  SECTION("each kind of work counts") {
    const RunCounts all{.gpus = 3, .communicators = 5, .rank_calls = 7, .events = 11};
    REQUIRE(microseconds_of({}) == 0);
    REQUIRE(microseconds_of(all) ==
            microseconds_of({.gpus = 3}) + microseconds_of({.communicators = 5}) +
                microseconds_of({.rank_calls = 7}) + microseconds_of({.events = 11}));
  }
  SECTION("a small run is repeated, a large one is said to be") {
    REQUIRE(idle_in(collective + "--env NCCL_DEBUG=INFO", "auto") == Idle{"--env NCCL_DEBUG=INFO"});
    REQUIRE(notes_in(collective + "--fidelity flow --env NCCL_DEBUG=INFO", "auto").back() ==
            "whether --env NCCL_DEBUG=INFO had an effect was not tried; --effects on tries it, by "
            "a run for each");
  }
  SECTION("what says how much is run is left alone, and what is noted already") {
    const std::string line = "collective all_reduce --cluster l40s-2-roce --nodes 2 -b 1M -e 1M ";
    REQUIRE(idle_in(line).contains("--nodes 2"));
    REQUIRE(idle_in(line, "auto").empty());
    REQUIRE(idle_in(line + "--env NCCL_IB_HCA=mlx5", "auto").empty());
    REQUIRE(idle_in(collective + "--seed 3", "auto").empty());
  }
}

TEST_CASE("defaults are named without a run where the command cannot tell them", "[effects]") {
  const std::string collective = "collective all_reduce --cluster dgx-h100 --nodes 2 -b 1M -e 1M ";
  SECTION("a choice that is the default") {
    const std::string line = collective + "--runtime nccl --seed 3";
    REQUIRE(idle_in(line, "auto") == Idle{"--runtime nccl (the default)"});
    REQUIRE(idle_in(line) == Idle{"--runtime nccl (the default)", "--seed 3"});
    REQUIRE(idle_in(line, "off").empty());
  }
  SECTION("the default beside another option") {
    REQUIRE(idle_in(collective + "--runtime plain --fidelity flow --algo ring", "auto") ==
            Idle{"--fidelity flow (the default)"});
    REQUIRE(idle_in(collective + "--runtime nccl --fidelity flow", "auto") ==
            Idle{"--runtime nccl (the default)"});
  }
  SECTION("a value that the command sees to be given is left to a run") {
    REQUIRE(idle_in("transfer --cluster dgx-h100 --from server0/gpu0 --to server1/gpu0 "
                    "--fidelity packet --pfc on",
                    "auto")
                .empty());
  }
}

TEST_CASE("every option is a result, an effort, or looked at", "[effects]") {
  std::vector<Command> commands;
  for (const Command& command : all_commands()) {
    const std::vector<Command> own = command.parts.empty() ? std::vector{command} : command.parts;
    commands.insert(commands.end(), own.begin(), own.end());
  }
  const Idle efforts{"threads", "log-level", "fast-forward"};
  std::size_t looked_at = 0;
  std::size_t results = 0;
  for (const Command& command : commands) {
    for (const Option& row : command.options) {
      INFO(command.form << " --" << row.name);
      const std::string choices(row.traits.choices);
      const std::string value = row.value.empty() ? ""
                                : choices.empty() ? "1"
                                                  : choices.substr(0, choices.find('|'));
      const OptionReader reader(command, {{std::string(row.name), {value}}});
      const std::vector<GivenThing> things = given_things(reader);
      const bool is_looked_at =
          row.traits.role != Role::Result && !efforts.contains(std::string(row.name));
      REQUIRE(things.size() == (is_looked_at ? 1 : 0));
      REQUIRE((!is_looked_at || things[0].option == row.name));
      ++(is_looked_at ? looked_at : results);
    }
  }
  UNSCOPED_INFO(looked_at << " options are looked at, " << results << " are of results or effort");
  REQUIRE(looked_at > results);
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
    // They write no document: others look at rows, at files, check what runs, or run others.
    const Idle without{"sweep", "topology", "import", "validate", "check", "serve"};
    for (const Command& part : command.parts.empty() ? std::vector{command} : command.parts) {
      INFO(part.form);
      REQUIRE((part.find("effects") != nullptr) != without.contains(std::string(part.name)));
    }
  }
}

}  // namespace trainyard
