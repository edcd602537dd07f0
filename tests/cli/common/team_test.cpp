// SPDX-License-Identifier: Apache-2.0
// Commands in several processes, each of them a thread here: what rank 0 writes is what one process
// writes, and the others write nothing.
#include "cli/common/team.h"

#include "support/catch.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/thread_team.h"

namespace trainyard {
namespace {

using Words = std::vector<std::string>;

Command command_named(const std::string& name) {
  const std::vector<Command> commands = all_commands();
  return *std::ranges::find(commands, name, &Command::name);
}

std::string alone(const std::string& name, const Words& words) {
  std::ostringstream out;
  REQUIRE(run_command(command_named(name), words, out) == 0);
  return out.str();
}

// What each process wrote, or its complaint.
std::vector<std::string> together(const std::string& name, const Words& words) {
  ThreadTeam team(2);
  return team.run<std::string>([&](PacketTeam& member) {
    std::ostringstream out;
    try {
      const int status = run_command_in(member, command_named(name), words, out);
      return status == 0 ? out.str() : "status " + std::to_string(status);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
  });
}

void require_alike(const std::string& name, const Words& words) {
  const std::vector<std::string> outputs = together(name, words);
  REQUIRE(outputs[0] == alone(name, words));
  REQUIRE(outputs[1].empty());
}

}  // namespace

TEST_CASE("commands in two processes write what they write in one", "[packet]") {
  require_alike("traffic", {"permutation", "--cluster", "fat-tree-k8-100g", "--nodes", "16",
                            "--fidelity", "packet", "--format", "json"});
  require_alike("collective", {"all_reduce", "--cluster", "dgx-h100", "--nodes", "2", "--runtime",
                               "plain", "--algo", "ring", "--fidelity", "packet", "-b", "64K", "-e",
                               "1M", "--fingerprint"});
  const Words step = {
      "--nodes",       "2",          "--cluster",      "dgx-h100",      "--fidelity",
      "packet",        "--workload", "bert-large",     "--runtime",     "plain",
      "--method",      "graph",      "--set",          "plan.tensor=8", "--set",
      "batch.micro=1", "--set",      "batch.global=2", "--control",     "hpcc",
      "--traffic",     "shared"};
  require_alike("step", step);
  REQUIRE(together("step", Words(step.begin(), step.end() - 4))[1] ==
          "--traffic: expected shared in several processes, which share out one network, found "
          "alone");
  require_alike("search", {"--cluster", "dgx-h100", "--nodes", "2", "--workload", "llama-3-8b",
                           "--runtime", "plain", "--format", "csv"});
}

TEST_CASE("files of results are those of the first process", "[packet]") {
  const ScratchFolder folder;
  const Words words = {"incast",
                       "--cluster",
                       "fat-tree-k8-100g",
                       "--fidelity",
                       "packet",
                       "--counters",
                       (folder.path() / "counters").string()};
  const std::string output = alone("traffic", words);
  const std::string counters = read_text_file(folder.path() / "counters");
  std::filesystem::remove(folder.path() / "counters");
  const std::vector<std::string> outputs = together("traffic", words);
  REQUIRE(outputs[0] == output);
  REQUIRE(read_text_file(folder.path() / "counters") == counters);
}

TEST_CASE("several processes want an engine whose work they can share", "[packet]") {
  const std::string complaint = "expected --fidelity packet, found ";
  const Words words = {"permutation", "--cluster", "fat-tree-k8-100g"};
  REQUIRE(together("traffic", words)[0] ==
          "trainyard traffic in several processes: " + complaint + "another engine");
  Words mixed = words;
  mixed.insert(mixed.end(), {"--fidelity", "flow"});
  REQUIRE(together("traffic", mixed)[1].ends_with(complaint + "--fidelity flow"));
  REQUIRE(is_for_team("search"));
  REQUIRE_FALSE(is_for_team("topology"));
}

}  // namespace trainyard
