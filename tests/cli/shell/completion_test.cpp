// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/shell/completion.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cli/common/commands.h"

namespace trainyard {
namespace {

using Words = std::vector<std::string>;

Words completed(const Words& words) {
  Words texts;
  for (const NextWord& each : complete(all_commands(), words)) {
    texts.push_back(each.text);
  }
  return texts;
}

bool has(const Words& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

void require_options(const Words& words, const Command& command) {
  Words asked = words;
  asked.emplace_back("--");
  const Words offered = completed(asked);
  REQUIRE(has(offered, "--help"));
  for (const Option& row : command.options) {
    INFO(command.form << ": --" << row.name);
    REQUIRE(has(offered, "--" + std::string(row.name)));
  }
}

}  // namespace

TEST_CASE("the first word is completed to a command, with what it is for") {
  const std::vector<Command> commands = all_commands();
  REQUIRE(completed({}).size() == commands.size());
  REQUIRE(completed({"co"}) == Words{"collective", "compare", "cost"});
  REQUIRE(complete(commands, Words{"pa"}).front().help ==
          "parts that cluster files may name, "
          "their values and sources");
  REQUIRE(completed({"--v"}) == Words{"--version"});
  REQUIRE(completed({"no-command", "--"}).empty());
}

TEST_CASE("each command completes all its options") {
  for (const Command& command : all_commands()) {
    if (command.parts.empty()) {
      require_options({std::string(command.name)}, command);
    }
    for (const Command& part : command.parts) {
      require_options({std::string(command.name), part_name(part)}, part);
    }
  }
  REQUIRE(completed({"explain", ""}) == Words{"step", "collective"});
}

TEST_CASE("options that are given already are completed again only where they repeat") {
  const Words offered = completed({"topology", "--nodes", "4", "--set", "nodes=4", "--"});
  REQUIRE_FALSE(has(offered, "--nodes"));
  REQUIRE(has(offered, "--set"));
  REQUIRE(has(completed({"topology", ""}), "--cluster"));
  REQUIRE_FALSE(has(completed({"collective", "all_reduce", "-b8", "--"}), "--minbytes"));
}

TEST_CASE("values are completed from the choices that the words before leave") {
  REQUIRE(completed({"collective", "all_re"}) == Words{"all_reduce"});
  REQUIRE(completed({"collective", "barrier", "--runtime", ""}) == Words{"plain"});
  REQUIRE(completed({"collective", "all_reduce", "--runtime", "m"}) == Words{"mpi"});
  const Words with_plain = {"step", "--runtime", "plain", "--fidelity", ""};
  REQUIRE_FALSE(has(completed(with_plain), "ports"));
  REQUIRE(completed({"step", "--format=j"}) == Words{"--format=json"});
  REQUIRE(completed({"step", "--nodes", ""}).empty());
}

TEST_CASE("names of clusters, workloads, models and parts are completed") {
  REQUIRE(completed({"step", "--cluster", "dgx-h"}) == Words{"dgx-h100", "dgx-h200"});
  REQUIRE(
      has(completed({"step", "--cluster", "dgx-h100", "--workload", "mixtral"}), "mixtral-8x7b"));
  REQUIRE(has(completed({"step", "--model", ""}), "llama-3-8b"));
  REQUIRE(has(completed({"parts", "H100-S"}), "H100-SXM"));
  REQUIRE(completed({"parts", "nv"}) == Words{"nvswitches"});
  REQUIRE(has(completed({"import", "--nic", "ConnectX"}), "ConnectX-7"));
  REQUIRE(completed({"jobs", "--job", "mixtral-8x7b"}).front().ends_with("@"));
}

TEST_CASE("the last item of a list is completed, to those that are not in it yet") {
  REQUIRE(completed({"collective", "all_reduce", "--algo", "rin"}) == Words{"ring"});
  REQUIRE(completed({"collective", "all_reduce", "--algo", "ring,tr"}) == Words{"ring,tree"});
  REQUIRE(completed({"collective", "all_reduce", "--algo=ring,tr"}) == Words{"--algo=ring,tree"});
  REQUIRE(completed({"collective", "all_reduce", "--algo", "ring,rin"}).empty());
  REQUIRE(completed({"collective", "all_reduce", "--proto", "ll,"}) ==
          Words{"ll,ll128", "ll,simple"});
  REQUIRE(has(completed({"search", "--schedule", "1f1b,"}), "1f1b,gpipe"));
}

TEST_CASE("the values of --man and --completion are completed") {
  REQUIRE(completed({"--completion", ""}) == Words{"bash", "zsh", "fish"});
  REQUIRE(completed({"--man", "ex"}) == Words{"explain", "explain-step", "explain-collective"});
  REQUIRE(completed({"--man", "step", ""}).empty());
}

TEST_CASE("pieces that bash makes of a word at = are completed as pieces") {
  REQUIRE(completed({"topology", "--set", "fabric.routing", "=", "ec"}) == Words{"ecmp"});
  REQUIRE(completed({"topology", "--set", "fabric.routing", "=", "ec"}) ==
          completed({"topology", "--set", "=", "fabric.routing", "=", "ec"}));
  REQUIRE(completed({"step", "--format", "="}) == Words{"table", "csv", "json"});
  REQUIRE(completed({"step", "--format", "=", "json", "--fidelity", "po"}) == Words{"ports"});
}

}  // namespace trainyard
