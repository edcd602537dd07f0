// SPDX-License-Identifier: Apache-2.0
// What the keys of a traffic file become; mistakes are in tests/golden/traffic_errors_test.cpp.
#include "support/catch.h"

#include "network/traffic/traffic_spec.h"

#include <string>
#include <variant>

#include "support/traffic.h"

namespace trainyard {
namespace {

using namespace literals;

const Cluster& hosts_spec() {
  static const Cluster cluster = shipped_cluster("h100-1gpu-400g");
  return cluster;
}

TEST_CASE("a group has defaults, and the seed of the file unless it has one", "[traffic]") {
  const TrafficSpec spec =
      traffic_of(hosts_spec(),
                 "seed: 5\ngroups:\n"
                 "  - {name: a, kind: permutation, size: 1 MB}\n"
                 "  - {name: b, kind: alltoall, size: 1 MB, seed: 6, start: 3 us, priority: 4,\n"
                 "     endpoints: gpus, repeat: 2, interval: 1 ms}\n");
  REQUIRE(spec.name == "a test");
  REQUIRE(spec.groups.size() == 2);
  const TrafficGroup& a = spec.groups[0];
  REQUIRE(a.kind == "permutation");
  REQUIRE(a.seed == 5);
  REQUIRE(a.start == 0_us);
  REQUIRE(!a.priority);
  REQUIRE(a.endpoints.size() == 10);
  REQUIRE(hosts_spec().topology.node(a.endpoints[9]).name == "server9/nic0");
  REQUIRE(std::get<PermutationTraffic>(a.pattern).rounds.count == 1);
  const TrafficGroup& b = spec.groups[1];
  REQUIRE(b.seed == 6);
  REQUIRE(b.start == 3_us);
  REQUIRE(b.priority == 4);
  REQUIRE(b.endpoints == hosts_spec().gpus);
  REQUIRE(std::get<AllToAllTraffic>(b.pattern).rounds.count == 2);
  REQUIRE(std::get<AllToAllTraffic>(b.pattern).rounds.interval == 1_ms);
}

TEST_CASE("a seed of the command line replaces all of the file", "[traffic]") {
  const std::string text =
      "seed: 5\ngroups:\n  - {name: a, kind: alltoall, size: 1 B}\n"
      "  - {name: b, kind: alltoall, size: 1 B, seed: 6}\n";
  const TrafficSpec spec = traffic_of(hosts_spec(), text, 9);
  REQUIRE(spec.groups[0].seed == 9);
  REQUIRE(spec.groups[1].seed == 9);
}

// NICs of 400 Gb/s with an efficiency of 0.96 and one for each GPU.
TEST_CASE("the average gap is mean size over load times rate", "[traffic]") {
  const auto gap = [](const std::string& more) {
    const TrafficSpec spec =
        traffic_of(hosts_spec(),
                   "groups:\n  - {name: a, kind: poisson, size: 1 MB, flows: 5, " + more + "}\n");
    return std::get<OpenLoopTraffic>(spec.groups[0].pattern).mean_gaps[3];
  };
  REQUIRE(gap("load: 0.5") == Approx(8e18 / (0.5 * 0.96 * 400e9)));
  REQUIRE(gap("load: 0.25, endpoints: gpus") == Approx(8e18 / (0.25 * 0.96 * 400e9)));
  REQUIRE(gap("load: 0.5, host_rate: 100 Gb/s") == Approx(8e18 / (0.5 * 100e9)));
}

TEST_CASE("the targets of incast are a number or devices", "[traffic]") {
  const auto incast = [](const std::string& more) {
    return std::get<IncastTraffic>(
        traffic_of(hosts_spec(), "groups:\n  - {name: a, kind: incast, size: 1 MB" + more + "}\n")
            .groups[0]
            .pattern);
  };
  REQUIRE(incast("").drawn_targets == 1);
  REQUIRE(!incast("").senders);
  REQUIRE(incast(", targets: 3, senders: 9").drawn_targets == 3);
  REQUIRE(incast(", targets: 3, senders: 9").senders == 9);
  REQUIRE(incast(", targets: 'server[2-3]/nic0'").targets.size() == 2);
  REQUIRE(incast(", endpoints: 'server[2-3]/nic0', targets: server0/nic0, senders: 2").senders ==
          2);
}

TEST_CASE("listed flows are sorted by start and have the usual size", "[traffic]") {
  const TrafficSpec spec =
      traffic_of(hosts_spec(),
                 "groups:\n  - name: a\n    kind: flows\n    size: 1 KB\n    flows:\n"
                 "      - {source: server0/nic0, target: server1/nic0, start: 2 us, priority: 1}\n"
                 "      - {source: server2/nic0, target: server1/nic0, size: 3 KB}\n");
  const auto& flows = std::get<ListedTraffic>(spec.groups[0].pattern).flows;
  REQUIRE(flows[0].size == Bytes(3000));
  REQUIRE(flows[1].size == Bytes(1000));
  REQUIRE(flows[1].time == 2_us);
  REQUIRE(flows[1].priority == 1);
  REQUIRE(!flows[0].priority);
}

TEST_CASE("a trace is found beside the file that names it", "[traffic]") {
  const ScratchFolder folder;
  (void)folder.write("t.csv", "start_us,source,target,bytes\n1,1,0,7\n");
  const auto file = folder.write(
      "t.yaml",
      "name: t\ngroups:\n  - {name: a, kind: trace, file: t.csv, endpoints: 'server[4-5]/nic0'}\n");
  ConfigDocument document = ConfigDocument::load(file);
  const TrafficSpec spec = read_traffic(document, hosts_spec(), {.shipped_sizes = {}, .seed = {}});
  document.finish();
  const auto& flows = std::get<ListedTraffic>(spec.groups[0].pattern).flows;
  REQUIRE(flows.size() == 1);
  REQUIRE(hosts_spec().topology.node(flows[0].source).name == "server5/nic0");
}

TEST_CASE("slow receivers are read, and what makes no sense is refused at its place", "[traffic]") {
  const std::string group = "groups: [{name: a, kind: permutation, size: 1 MB}]\n";
  const auto read = [&](const std::string& receivers) {
    return traffic_of(hosts_spec(), "slow_receivers: [" + receivers + "]\n" + group).slow_receivers;
  };
  const std::vector<SlowHost> some = read(
      "{devices: 'server[4-5]/nic0', drain: 10 Gb/s, xoff: 64 KiB, xon: 32 KiB, start: 5 us}, "
      "{devices: server0/nic0, drain: 1 Mb/s, xoff: 1 MiB, xon: 1 MiB, end: 2 ms}");
  REQUIRE(some.size() == 3);
  REQUIRE(hosts_spec().topology.node(some[1].node).name == "server5/nic0");
  REQUIRE(some[1].receiver.drain == gigabits_per_second(10));
  REQUIRE(some[1].receiver.xoff == 64_KiB);
  REQUIRE(some[1].receiver.xon == 32_KiB);
  REQUIRE(some[1].from == 5_us);
  REQUIRE(some[1].until == SimTime::max());
  REQUIRE(some[2].until == 2_ms);
  const auto error_of = [&](const std::string& receivers) {
    try {
      static_cast<void>(read(receivers));
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto has = [&](const std::string& receivers, const std::string& part) {
    return error_of(receivers).find(part) != std::string::npos;
  };
  REQUIRE(has("{devices: server0/nic0, drain: 1 kb/s, xoff: 2 B, xon: 1 B}",
              "slow_receivers[0].drain: expected a rate of at least 1 Mb/s"));
  REQUIRE(has("{devices: server0/nic0, drain: 1 Gb/s, xoff: 65 MiB, xon: 1 B}",
              "slow_receivers[0].xoff: expected at most 64 MiB"));
  REQUIRE(has("{devices: server0/nic0, drain: 1 Gb/s, xoff: 1 B, xon: 2 B}",
              "slow_receivers[0].xon: expected no more than xoff"));
  REQUIRE(has("{devices: server0/nic0, drain: 1 Gb/s, xoff: 2 B, xon: 1 B, start: 2 us, end: 1 us}",
              "slow_receivers[0].end: expected a time after the start"));
  REQUIRE(has("{devices: gpus, drain: 1 Gb/s, xoff: 2 B, xon: 1 B}",
              "expected devices with links of their own into the fabric, each once, found "));
}

TEST_CASE("every shipped traffic file is read on a shipped fat tree", "[traffic]") {
  const Cluster cluster = shipped_cluster("fat-tree-k8-100g");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigsFolder / "traffic")) {
    if (entry.path().extension() == ".yaml") {
      INFO(entry.path().string());
      ConfigDocument document = ConfigDocument::load(entry.path());
      const TrafficSpec spec = read_traffic(
          document, cluster, {.shipped_sizes = kConfigsFolder / "traffic/sizes", .seed = {}});
      document.finish();
      REQUIRE(!spec.groups.empty());
      ++files;
    }
  }
  REQUIRE(files >= 6);
}

}  // namespace
}  // namespace trainyard
