// SPDX-License-Identifier: Apache-2.0
// Completion times with a closed form, and the contract at the end of a run.
#include "support/catch.h"

#include "network/traffic/traffic_run.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/config_error.h"
#include "support/traffic.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kLink = fabric_link(gigabits_per_second(100), 1_us);

// Hosts on one switch: 2 us between any two.
Cluster star(int hosts) {
  return cluster_of(one_switch(hosts, kLink));
}

SimTime time_of(std::int64_t bytes, std::int64_t gigabits) {
  return transfer_time(Bytes(bytes), gigabits_per_second(gigabits));
}

TEST_CASE("one flow takes its latency and its size over the rate, as alone", "[traffic]") {
  const Cluster cluster = star(3);
  const TrafficSpec spec =
      traffic_of(cluster,
                 "groups:\n  - name: g\n    kind: flows\n    start: 5 us\n    flows:\n"
                 "      - {source: host 0, target: host 2, size: 10 MB}\n");
  for (const Fidelity fidelity : {Fidelity::Flow, Fidelity::Analytical}) {
    const TrafficRun result = run_spec(cluster, spec, fidelity);
    REQUIRE(result.flows.size() == 1);
    REQUIRE(result.flows[0].start == 5_us);
    REQUIRE(result.flows[0].alone == 2_us + 800_us);
    REQUIRE(result.flows[0].end == 5_us + 2_us + 800_us);
    REQUIRE(result.network.bytes == Bytes(10'000'000));
    REQUIRE(broken_promises(cluster.topology, spec, result, 5).empty());
  }
}

TEST_CASE("two flows to one target share its link, and the rest of the longer runs alone",
          "[traffic]") {
  const Cluster cluster = star(3);
  const TrafficRun result =
      run_spec(cluster, traffic_of(cluster,
                                   "groups:\n  - name: g\n    kind: flows\n    flows:\n"
                                   "      - {source: host 0, target: host 2, size: 1 MB}\n"
                                   "      - {source: host 1, target: host 2, size: 3 MB}\n"));
  REQUIRE(result.flows[0].end == 2_us + time_of(2'000'000, 100));
  REQUIRE(result.flows[1].end == 2_us + time_of(4'000'000, 100));
  REQUIRE(result.flows[1].alone == 2_us + time_of(3'000'000, 100));
}

TEST_CASE("N to one drains at the rate of the link of the target", "[traffic]") {
  for (const std::int64_t senders : {1, 2, 5, 16, 64}) {
    INFO(senders);
    const Cluster cluster = star(65);
    const TrafficRun result = run_spec(
        cluster, traffic_of(cluster,
                            "groups:\n  - {name: g, kind: incast, endpoints: gpus, size: 1 MB, "
                            "senders: " +
                                std::to_string(senders) + "}\n"));
    REQUIRE(result.flows.size() == static_cast<std::size_t>(senders));
    for (const FlowRecord& flow : result.flows) {
      REQUIRE(flow.end == 2_us + time_of(1'000'000 * senders, 100));
    }
    REQUIRE(result.quiet_time == *result.flows[0].end);
  }
}

// Each link from and to a host carries N - 1 flows, all at the same rate.
TEST_CASE("all to all on one switch takes what the links of the hosts take", "[traffic]") {
  const Cluster cluster = star(9);
  const TrafficSpec spec = traffic_of(
      cluster, "groups:\n  - {name: g, kind: alltoall, endpoints: gpus, size: 100 KB}\n");
  const TrafficRun flow = run_spec(cluster, spec);
  REQUIRE(flow.flows.size() == 72);
  for (const FlowRecord& each : flow.flows) {
    REQUIRE(each.end == 2_us + time_of(800'000, 100));
  }
  const TrafficRun bound = run_spec(cluster, spec, Fidelity::Analytical);
  REQUIRE(bound.flows[0].end == 2_us + time_of(100'000, 100));
  REQUIRE(bound.quiet_time == 2_us + time_of(800'000, 100));
}

TEST_CASE("a permutation on one switch disturbs nobody", "[traffic]") {
  const Cluster cluster = star(20);
  for (const FlowRecord& flow :
       run_spec(cluster,
                traffic_of(cluster,
                           "groups:\n  - {name: g, kind: permutation, endpoints: gpus, size: "
                           "1 MB, repeat: 3, interval: 1 ms}\n"))
           .flows) {
    REQUIRE(*flow.end - flow.start == flow.alone);
  }
}

TEST_CASE("sprayed over all paths, a permutation on a full fat tree disturbs nobody", "[traffic]") {
  const Cluster cluster =
      shipped_cluster("fat-tree-k8-100g", {.settings = {"fabric.routing=spray"}});
  const TrafficSpec spec =
      traffic_of(cluster, "groups:\n  - {name: g, kind: permutation, size: 10 MB}\n");
  const TrafficRun result = run_spec(cluster, spec);
  REQUIRE(broken_promises(cluster.topology, spec, result, 5).empty());
  for (const FlowRecord& flow : result.flows) {
    REQUIRE((*flow.end - flow.start) / flow.alone == Approx(1.0).epsilon(0.001));
  }
}

TEST_CASE("flows begin in the order of their starts, then of their groups", "[traffic]") {
  const Cluster cluster = star(4);
  const TrafficRun result = run_spec(
      cluster,
      traffic_of(cluster,
                 "groups:\n"
                 "  - {name: a, kind: permutation, endpoints: gpus, size: 1 KB, start: 3 us}\n"
                 "  - {name: b, kind: incast, endpoints: gpus, size: 1 KB, start: 1 us}\n"
                 "  - {name: c, kind: alltoall, endpoints: gpus, size: 1 KB, start: 3 us}\n"));
  std::vector<std::uint32_t> groups;
  for (const FlowRecord& flow : result.flows) {
    groups.push_back(flow.group);
  }
  std::vector<std::uint32_t> expected(3, 1);
  expected.insert(expected.end(), 4, 0);
  expected.insert(expected.end(), 12, 2);
  REQUIRE(groups == expected);
}

TEST_CASE("equal runs have equal bits, other seeds other ones", "[traffic]") {
  const Cluster cluster = shipped_cluster("fat-tree-k8-100g", {.nodes = 32});
  const auto fingerprint = [&](std::uint64_t seed) {
    return run_spec(cluster,
                    traffic_of(cluster,
                               "groups:\n  - {name: g, kind: poisson, size: fb-hadoop, load: "
                               "0.5, flows: 2000}\n",
                               seed))
        .fingerprint;
  };
  REQUIRE(fingerprint(1) == fingerprint(1));
  REQUIRE(fingerprint(1) != fingerprint(2));
}

TEST_CASE("no flow is faster than alone, and analytical is a lower bound of flow", "[traffic]") {
  const Cluster cluster = shipped_cluster("fat-tree-k8-100g", {.nodes = 32});
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const TrafficSpec spec = traffic_of(
        cluster,
        "groups:\n  - {name: g, kind: poisson, size: web-search, load: 0.6, flows: 300}\n"
        "  - {name: h, kind: incast, senders: 8, size: 100 KB, repeat: 4, interval: 100 us}\n",
        seed);
    const TrafficRun flow = run_spec(cluster, spec);
    const TrafficRun bound = run_spec(cluster, spec, Fidelity::Analytical);
    SimTime last;
    for (std::size_t index = 0; index < flow.flows.size(); ++index) {
      const FlowRecord& each = flow.flows[index];
      REQUIRE(*each.end - each.start >= each.alone);
      REQUIRE(*bound.flows[index].end - bound.flows[index].start == each.alone);
      last = std::max(last, *each.end);
    }
    REQUIRE(bound.quiet_time <= last);
  }
}

TEST_CASE("a plan counts flows and bytes, and refuses what could not run", "[traffic]") {
  const Cluster cluster = star(5);
  const std::vector<GroupPlan> plans = plan_traffic(
      cluster, traffic_of(cluster,
                          "groups:\n  - {name: a, kind: alltoall, endpoints: gpus, size: 1 KB}\n"
                          "  - {name: b, kind: incast, endpoints: gpus, size: 2 KB}\n"));
  REQUIRE(plans[0].flows == 20);
  REQUIRE(plans[0].bytes == Bytes(20'000));
  REQUIRE(plans[1].flows == 4);
  REQUIRE(plans[1].bytes == Bytes(8'000));
  const auto error = [](const Cluster& on, const std::string& group) -> std::string {
    try {
      (void)plan_traffic(on, traffic_of(on, "groups:\n  - {name: g, " + group + "}\n"));
    } catch (const ConfigError& problem) {
      return problem.what();
    }
    return "no error";
  };
  REQUIRE(error(cluster,
                "kind: poisson, endpoints: gpus, size: 4 TB, load: 0.001, duration: "
                "1 us") ==
          "my.yaml: group g: expected a flow or more, found none: its duration is too short for "
          "its load");
  REQUIRE(error(cluster,
                "kind: alltoall, endpoints: gpus, size: 4 TB, repeat: 1000000, interval: "
                "0") == "my.yaml: group g: expected at most 1048576TiB in all, found more");
  // A row of two switches without a link between them.
  TopologyBuilder builder;
  std::vector<NodeId> nodes;
  for (const char* name : {"a", "b"}) {
    builder.add_duplex_link(add_host(builder, nodes), add_switch(builder, name), kLink);
  }
  const Cluster apart =
      cluster_of(TestFabric{.topology = std::move(builder).build(), .hosts = std::move(nodes)});
  REQUIRE(
      error(apart, "kind: permutation, endpoints: gpus, size: 1 KB") ==
      "my.yaml: group g: no path leads from host 0 to host 1: the cluster does not connect them");
}

// Takes messages and completes only some.
class Forgetful final : public Network {
 public:
  Forgetful(Simulator& simulator, std::uint64_t forgotten)
      : simulator_(simulator), forgotten_(forgotten) {}
  ConnectionId connect(const ConnectionSpec& /*spec*/) override {
    return ConnectionId(connections_++);
  }
  void send(ConnectionId /*connection*/, Bytes size, EventHandler& done,
            std::uint64_t token) override {
    if (token != forgotten_) {
      simulator_.schedule(1_us, done, token);
      stats_.bytes += size;
    }
  }
  [[nodiscard]] SimTime quiet_time() const override { return simulator_.now(); }
  void reserve(std::size_t /*connections*/) override {}
  [[nodiscard]] NetworkStats stats() const override { return stats_; }
  [[nodiscard]] std::vector<LinkUse> link_use() const override { return {}; }
  void lose(Bytes bytes) { stats_.bytes = stats_.bytes - bytes; }

 private:
  Simulator& simulator_;
  std::uint64_t forgotten_;
  std::uint32_t connections_ = 0;
  NetworkStats stats_;
};

TEST_CASE("a run whose flows do not all end says who waits", "[traffic]") {
  const Cluster cluster = star(4);
  const TrafficSpec spec =
      traffic_of(cluster,
                 "groups:\n  - {name: in, kind: incast, endpoints: gpus, size: 1 MB, targets: "
                 "host 2, start: 4 us}\n");
  const auto promises = [&](std::uint64_t forgotten, Bytes lost) {
    Simulator simulator;
    Forgetful network(simulator, forgotten);
    network.lose(lost);
    Routing routing(cluster.topology, cluster.routing);
    return broken_promises(cluster.topology, spec,
                           run_traffic(simulator, network, routing, spec, 3), 5);
  };
  REQUIRE(promises(9, Bytes(0)).empty());
  REQUIRE(promises(1, Bytes(0)) ==
          std::vector<std::string>{"group in: host 2 waits for 1MB from host 1, sent at 4us",
                                   "1 of 3 flows never were complete"});
  REQUIRE(
      promises(9, Bytes(10)) ==
      std::vector<std::string>{"the network carried 2999990 bytes where 3000000 were asked for"});
}

TEST_CASE("who waits is cut to the lines that are wanted", "[traffic]") {
  const Cluster cluster = star(3);
  const TrafficSpec spec =
      traffic_of(cluster, "groups:\n  - {name: g, kind: alltoall, endpoints: gpus, size: 1 B}\n");
  TrafficRun result = run_spec(cluster, spec);
  for (FlowRecord& flow : result.flows) {
    flow.end.reset();
  }
  const std::vector<std::string> lines = broken_promises(cluster.topology, spec, result, 3);
  REQUIRE(lines.size() == 3);
  REQUIRE(lines.back() == "6 of 6 flows never were complete");
}

}  // namespace
}  // namespace trainyard
