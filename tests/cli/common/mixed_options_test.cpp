// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/mixed_options.h"

#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/paths.h"

namespace trainyard {
namespace {

const std::vector<std::string> kMixedRun{
    "list", "--cluster", source_dir().string() + "/configs/clusters/fat-tree-k8-100g.yaml",
    "--effects", "off"};

std::string run_mixed(const std::vector<std::string>& options) {
  std::vector<std::string> arguments = kMixedRun;
  arguments.insert(arguments.end(), {"--fidelity", "mixed"});
  arguments.insert(arguments.end(), options.begin(), options.end());
  std::ostringstream out;
  int status = 1;
  try {
    status = run_command(traffic_command(), arguments, out);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  REQUIRE(status == 0);
  return out.str();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The group `shared` has two flows of 1,000,000 bytes, `late` one of 100,000.
TEST_CASE("groups, devices, links and crowds say what runs as packets") {
  REQUIRE(has(run_mixed({"--packets", "group=shared"}),
              "mixed: 2 messages of 2000000 bytes ran as packets, 1 of 100000 bytes as flows"));
  REQUIRE(has(run_mixed({"--packets", "group=late"}),
              "mixed: 1 messages of 100000 bytes ran as packets, 2 of 2000000 bytes as flows"));
  REQUIRE(has(run_mixed({"--packets", "group=late", "--packets", "group=shared"}),
              "mixed: 3 messages of 2100000 bytes ran as packets, 0 of 0 bytes as flows"));
  REQUIRE(has(run_mixed({"--packets", "device=server[0-1]/nic0"}),
              "mixed: 2 messages of 2000000 bytes ran as packets"));
  REQUIRE(has(run_mixed({"--packets", "link=server3/*,leaf*"}),
              "mixed: 1 messages of 100000 bytes ran as packets"));
  REQUIRE(has(run_mixed({"--packets", "crowd=2"}),
              "mixed: 3 messages of 2100000 bytes ran as packets"));
  REQUIRE(has(run_mixed({"--packets", "crowd=4"}),
              "mixed: 0 messages of 0 bytes ran as packets, 3 of 2100000 bytes as flows"));
}

TEST_CASE("what --packets cannot mean is refused in one line") {
  REQUIRE(run_mixed({}) == "--fidelity mixed: expected --packets WHICH beside it, found none");
  REQUIRE(run_mixed({"--packets", "group=none"}) ==
          "--packets: expected group=NAME of a group of the file, found \"group=none\"");
  REQUIRE(run_mixed({"--packets", "all"}) ==
          "--packets: expected link=A,B, device=NAME, crowd=N or group=NAME of a group of the "
          "file, found \"all\"");
  REQUIRE(run_mixed({"--packets", "link=leaf0"}) ==
          "--packets: expected link=A,B with nodes or patterns such as leaf*,spine0, found "
          "\"link=leaf0\"");
  REQUIRE(run_mixed({"--packets", "link=leaf0,leaf1"}) ==
          "--packets: expected two nodes with a link between them, found \"link=leaf0,leaf1\"");
  REQUIRE(run_mixed({"--packets", "device=nobody"}) ==
          "--packets: expected names or patterns of nodes that the cluster has, found "
          "\"device=nobody\"");
  REQUIRE(run_mixed({"--packets", "device=server[0/nic0"}) ==
          "--packets: expected a range of numbers such as [0-7] between brackets, found "
          "\"device=server[0/nic0\"");
  REQUIRE(run_mixed({"--packets", "crowd=1"}) ==
          "--packets: expected crowd=N with a number from 2, found \"crowd=1\"");
}

TEST_CASE("jobs run as packets beside others by their number, their text or their links") {
  const auto run = [](const std::string& which) {
    const std::vector<std::string> arguments{
        "--cluster",  source_dir().string() + "/configs/clusters/dgx-h100.yaml",
        "--nodes",    "2",
        "--job",      "bert-large@0",
        "--job",      "bert-large@1",
        "--steps",    "1",
        "--effects",  "off",
        "--packets",  which,
        "--fidelity", "mixed"};
    std::ostringstream out;
    const int status = run_command(jobs_command(), arguments, out);
    REQUIRE(status == 0);
    return out.str();
  };
  REQUIRE(run("job=1") == run("job=bert-large@1"));
  REQUIRE(has(run("link=server*/*,leaf*"), "mixed: 0 messages of 0 bytes ran as packets"));
}

TEST_CASE("notes say how many flows packets met, and that flows were not stopped") {
  MixedStats mixed;
  mixed.max_flows_met = 4;
  PacketStats packets;
  REQUIRE(!has(describe(mixed, packets), "met"));
  REQUIRE(!has(describe(mixed, packets), "stopped"));
  mixed.max_flows_met = 5;
  packets.pauses = 1;
  REQUIRE(has(describe(mixed, packets), "packets met up to 5 flows on a link"));
  REQUIRE(has(describe(mixed, packets), "; flows went on over ports that pauses stopped"));
}

}  // namespace
}  // namespace trainyard
