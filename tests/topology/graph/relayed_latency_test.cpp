// SPDX-License-Identifier: Apache-2.0
// Against rounds of relaxation over all links, on random graphs.
#include "support/catch.h"

#include "topology/graph/relayed_latency.h"

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace trainyard {
namespace {

using namespace literals;

// Links of chance between nodes of chance, some of which no link reaches.
Topology random_graph(std::mt19937_64& engine) {
  constexpr std::array kKinds{NodeKind::Gpu, NodeKind::Nic, NodeKind::Switch};
  TopologyBuilder builder;
  std::vector<NodeId> nodes;
  for (std::uint64_t count = 2 + engine() % 12; count > 0; --count) {
    nodes.push_back(
        builder.add_node({.kind = kKinds.at(engine() % kKinds.size()),
                          .name = std::to_string(count),
                          .latency = picoseconds(static_cast<std::int64_t>(engine() % 50))}));
  }
  for (std::uint64_t count = engine() % 40; count > 0; --count) {
    const NodeId source = nodes[engine() % nodes.size()];
    const NodeId target = nodes[engine() % nodes.size()];
    if (source != target) {
      builder.add_link(source, target,
                       {.bandwidth = gigabits_per_second(1),
                        .latency = picoseconds(static_cast<std::int64_t>(engine() % 100))});
    }
  }
  return std::move(builder).build();
}

// The least latency from `source` to each node, one more link in each round.
std::vector<SimTime> naive_latencies(const Topology& topology, NodeId source) {
  std::vector<SimTime> best(topology.node_count(), SimTime::max());
  best[source.value()] = SimTime();
  for (std::uint32_t round = 0; round < topology.node_count(); ++round) {
    for (const Link& link : topology.links()) {
      const Node& target = topology.node(link.target);
      const SimTime passed = target.kind == NodeKind::Gpu ? SimTime() : target.latency;
      if (best[link.source.value()] != SimTime::max()) {
        best[link.target.value()] = std::min(
            best[link.target.value()], best[link.source.value()] + link.spec.latency + passed);
      }
    }
  }
  return best;
}

}  // namespace

TEST_CASE("news take the shortest way, whoever passes them on") {
  std::mt19937_64 engine(7);
  for (int run = 0; run < 300; ++run) {
    const Topology topology = random_graph(engine);
    std::vector<std::vector<SimTime>> naive;
    for (std::uint32_t node = 0; node < topology.node_count(); ++node) {
      naive.push_back(naive_latencies(topology, NodeId(node)));
      const std::vector<SimTime> found =
          relayed_latencies(topology, NodeId(node), Heading::FromHub);
      INFO("run=" << run << " node=" << node);
      REQUIRE(found == naive.back());
    }
    for (std::uint32_t hub = 0; hub < topology.node_count(); ++hub) {
      if (topology.node(NodeId(hub)).kind != NodeKind::Gpu) {
        continue;
      }
      const std::vector<SimTime> found = relayed_latencies(topology, NodeId(hub), Heading::ToHub);
      for (std::uint32_t node = 0; node < topology.node_count(); ++node) {
        INFO("run=" << run << " hub=" << hub << " node=" << node);
        REQUIRE(found[node] == naive[node][hub]);
      }
    }
  }
}

}  // namespace trainyard
