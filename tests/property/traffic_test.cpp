// SPDX-License-Identifier: Apache-2.0
// Random traffic on random clusters: every flow ends, bytes are conserved on every link of every
// path, nothing is faster than alone, and no link carries more than its rate allows.
#include "support/catch.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "network/traffic/traffic_run.h"
#include "network/traffic/traffic_summary.h"
#include "sim/random.h"
#include "support/effort.h"
#include "support/traffic.h"
#include "topology/graph/path.h"

namespace trainyard {
namespace {

const Cluster& random_cluster(RandomStream& random) {
  static const std::array<Cluster, 4> clusters{
      shipped_cluster("fat-tree-k8-100g", {.nodes = 24}), shipped_cluster("dgx-a100", {.nodes = 2}),
      shipped_cluster("mixed-a100"),
      shipped_cluster("h100-1gpu-400g", {.settings = {"fabric.routing=adaptive"}})};
  return clusters.at(random.below(clusters.size()));
}

std::string random_group(RandomStream& random, int number) {
  static const std::array<std::string, 6> kinds{"permutation, repeat: 3, interval: 20 us",
                                                "incast, senders: 3, targets: 2",
                                                "incast",
                                                "alltoall",
                                                "poisson, load: 0.7, flows: 60",
                                                "uniform, load: 0.4, flows: 40, duration: 10 s"};
  static const std::array<std::string, 4> sizes{"1 B", "64 KiB", "fb-hadoop",
                                                "{cdf: [[1 B, 0], [300 B, 50], [2 MB, 100]]}"};
  std::string text = "  - {name: g" + std::to_string(number);
  text += ", kind: " + kinds.at(random.below(kinds.size()));
  text += ", size: " + sizes.at(random.below(sizes.size()));
  text += random.below(2) == 0 ? ", endpoints: gpus" : ", endpoints: nics";
  text += ", start: " + std::to_string(random.below(50)) + " us}\n";
  return text;
}

std::string random_groups(RandomStream& random) {
  std::string text = "groups:\n";
  const int groups = 1 + static_cast<int>(random.below(3));
  for (int number = 0; number < groups; ++number) {
    text += random_group(random, number);
  }
  return text;
}

struct RandomRun {
  explicit RandomRun(std::uint64_t seed)
      : RandomRun(seed, RandomStream(seed, "traffic property")) {}

  const Cluster& cluster;
  std::string groups;
  std::string text;  // For messages of tests.
  TrafficSpec spec;

 private:
  RandomRun(std::uint64_t seed, RandomStream random)
      : cluster(random_cluster(random)),
        groups(random_groups(random)),
        text("seed=" + std::to_string(seed) + " on " + cluster.name + '\n' + groups),
        spec(traffic_of(cluster, groups, seed)) {}
};

// What each link has to carry, from the routes of the flows one by one.
std::vector<Bytes> link_bytes(const Cluster& cluster, const TrafficRun& result) {
  Routing routing(cluster.topology, cluster.routing);
  std::vector<Bytes> bytes(cluster.topology.link_count());
  std::vector<LinkId> path;
  for (const FlowRecord& flow : result.flows) {
    REQUIRE(routing.route(flow.source, flow.target, flow.label, path));
    for (const LinkId link : path) {
      bytes[link.value()] += flow.size;
    }
  }
  return bytes;
}

TEST_CASE("random traffic ends, conserves bytes and keeps to the rates of links", "[traffic]") {
  for (std::uint64_t seed = 1; seed <= cases(60); ++seed) {
    const RandomRun random(seed);
    INFO(random.text);
    const Cluster& cluster = random.cluster;
    const TrafficSpec& spec = random.spec;
    const TrafficRun flow = run_spec(cluster, spec, Fidelity::Flow);
    const TrafficRun bound = run_spec(cluster, spec, Fidelity::Analytical);
    REQUIRE(broken_promises(cluster.topology, spec, flow, 3).empty());
    REQUIRE(broken_promises(cluster.topology, spec, bound, 3).empty());
    REQUIRE(flow.fingerprint == run_spec(cluster, spec, Fidelity::Flow).fingerprint);

    REQUIRE(flow.flows.size() == bound.flows.size());
    for (std::size_t index = 0; index < flow.flows.size(); ++index) {
      const FlowRecord& each = flow.flows[index];
      REQUIRE(*each.end - each.start >= each.alone);
      REQUIRE(*bound.flows[index].end - each.start == each.alone);
    }
    const std::vector<Bytes> bytes = link_bytes(cluster, flow);
    for (const LinkUse& use : flow.link_use) {
      REQUIRE(use.bytes == bytes[use.link.value()]);
    }
    const TrafficSummary summary = summarise(cluster.topology, spec, flow, 1);
    REQUIRE(summary.links.at(0).utilisation <= 1.0);
    REQUIRE(summary.all.slowdown->p50 >= 1.0);
    REQUIRE(summarise(cluster.topology, spec, bound, 1).makespan <= summary.makespan);
  }
}

TEST_CASE("random traffic over packets ends, conserves bytes, and no flow is faster than alone",
          "[traffic]") {
  for (std::uint64_t seed = 1; seed <= cases(60); ++seed) {
    const RandomRun random(seed);
    INFO(random.text);
    const TrafficRun packet = run_spec(random.cluster, random.spec, Fidelity::Packet);
    REQUIRE(broken_promises(random.cluster.topology, random.spec, packet, 3).empty());
    REQUIRE(packet.network.packets.drops == 0);
    for (const FlowRecord& flow : packet.flows) {
      // Rates on the line are rounded to a bit a second.
      REQUIRE(*flow.end - flow.start >= flow.alone - picoseconds(100));
    }
    const std::vector<Bytes> bytes = link_bytes(random.cluster, packet);
    const bool is_adaptive = random.cluster.routing.policy == RoutingPolicy::Adaptive;
    for (const LinkUse& use : packet.link_use) {
      // Switches that choose send packets by other ways than routes say, between the same ends.
      const Link& link = random.cluster.topology.link(use.link);
      const bool is_trunk = random.cluster.topology.node(link.source).kind == NodeKind::Switch &&
                            random.cluster.topology.node(link.target).kind == NodeKind::Switch;
      REQUIRE((use.bytes == bytes[use.link.value()] || (is_adaptive && is_trunk)));
    }
    REQUIRE(packet.fingerprint ==
            run_spec(random.cluster, random.spec, Fidelity::Packet).fingerprint);
  }
}

}  // namespace
}  // namespace trainyard
