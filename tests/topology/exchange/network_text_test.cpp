// SPDX-License-Identifier: Apache-2.0
// Builds the cluster that a network became and compares both, switch by switch: two networks are
// one if their nodes cannot be told apart by what they are joined to, hosts having numbers.
#include "support/catch.h"

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/config.h"
#include "support/imported.h"
#include "support/simulated_networks.h"
#include "topology/cluster/cluster.h"

namespace trainyard {
namespace {

struct PlainNetwork {
  std::vector<std::int64_t> kinds;  // Number of a host; below zero: delay of a switch.
  using Edge = std::tuple<std::int64_t, std::int64_t, std::size_t>;  // Rate, delay, other end.
  std::vector<std::vector<Edge>> edges;

  std::size_t add(std::int64_t kind) {
    kinds.push_back(kind);
    edges.emplace_back();
    return kinds.size() - 1;
  }
  void join(std::size_t from, std::size_t to, Bandwidth rate, SimTime delay) {
    edges[from].emplace_back(rate.bits_per_second(), delay.picoseconds(), to);
    edges[to].emplace_back(rate.bits_per_second(), delay.picoseconds(), from);
  }
};

constexpr double kEfficiency = 0.98037338439;  // The NIC that parts are variants of has it.

PlainNetwork plain(const SimulatedNetwork& network) {
  PlainNetwork result;
  for (std::uint32_t host = 0; host < network.hosts; ++host) {
    result.add(host);
  }
  for (const SimTime delay : network.switch_delays) {
    result.add(-1 - delay.picoseconds());
  }
  for (const SimulatedNetwork::Cable& cable : network.cables) {
    result.join(cable.from, cable.to, cable.rate.scaled(kEfficiency), cable.delay);
  }
  return result;
}

PlainNetwork plain(const Topology& topology, int nics) {
  PlainNetwork result;
  std::map<NodeId, std::size_t> places;
  for (std::uint32_t node = 0; node < topology.node_count(); ++node) {
    const Node& device = topology.node(NodeId(node));
    if (device.kind == NodeKind::Nic) {
      const auto slash = device.name.find("/nic");
      const std::int64_t server = std::stol(device.name.substr(6, slash - 6));
      places[NodeId(node)] = result.add(server * nics + std::stol(device.name.substr(slash + 4)));
    } else if (device.kind == NodeKind::Switch) {
      places[NodeId(node)] = result.add(-1 - device.latency.picoseconds());
    }
  }
  for (std::uint32_t number = 0; number < topology.link_count(); ++number) {
    const Link& link = topology.link(LinkId(number));
    if (link.spec.kind == LinkKind::Network && link.source < link.target) {
      result.join(places.at(link.source), places.at(link.target), link.spec.bandwidth,
                  link.spec.latency);
    }
  }
  return result;
}

// Labels of both networks' nodes after five rounds, each sorted.
std::array<std::vector<std::size_t>, 2> labels(const std::array<PlainNetwork, 2>& networks) {
  std::array<std::vector<std::size_t>, 2> all;
  std::map<std::int64_t, std::size_t> of_kinds;
  for (std::size_t which = 0; which < 2; ++which) {
    for (const std::int64_t kind : networks[which].kinds) {
      all[which].push_back(of_kinds.emplace(kind, of_kinds.size()).first->second);
    }
  }
  for (int round = 0; round < 5; ++round) {
    std::map<std::pair<std::size_t, std::vector<PlainNetwork::Edge>>, std::size_t> names;
    for (std::size_t which = 0; which < 2; ++which) {
      std::vector<std::size_t> next;
      for (std::size_t node = 0; node < all[which].size(); ++node) {
        std::vector<PlainNetwork::Edge> edges = networks[which].edges[node];
        for (PlainNetwork::Edge& edge : edges) {
          std::get<2>(edge) = all[which][std::get<2>(edge)];
        }
        std::ranges::sort(edges);
        next.push_back(
            names.emplace(std::pair(all[which][node], edges), names.size()).first->second);
      }
      all[which] = next;
    }
  }
  for (std::vector<std::size_t>& of_one : all) {
    std::ranges::sort(of_one);
  }
  return all;
}

std::string written(const SimulatedNetwork& network) {
  return to_cluster_yaml(network, shipped_catalogue(), "H100-SXM",
                         {.name = "n", .source = "s", .remarks = network.remarks});
}

void require_same(const SimulatedNetwork& network, const std::string& yaml) {
  ConfigDocument document = ConfigDocument::parse(yaml, "n.yaml");
  const Cluster cluster = build_cluster(document, shipped_catalogue(), {});
  const auto both =
      labels({plain(network), plain(cluster.topology, static_cast<int>(network.gpus_per_server))});
  REQUIRE(both[0] == both[1]);
}

}  // namespace

TEST_CASE("a network of tiers is written as a template that builds the same network") {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    INFO("seed=" << seed);
    std::mt19937_64 engine(seed);
    TierShape drawn = drawn_shape(engine);
    const SimulatedNetwork network = network_of(drawn, engine);
    const std::string yaml = written(network);
    REQUIRE(yaml.find("template: graph") == std::string::npos);
    require_same(network, yaml);
  }
}

TEST_CASE("any other network is written as a graph that builds the same network") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed=" << seed);
    std::mt19937_64 engine(seed);
    TierShape drawn = drawn_shape(engine);
    SimulatedNetwork network = network_of(drawn, engine);
    network.cables[engine() % network.cables.size()].delay = nanoseconds(2100);
    network.switch_delays.back() = nanoseconds(55);
    const std::string yaml = written(network);
    REQUIRE(yaml.find("template: graph") != std::string::npos);
    require_same(network, yaml);
  }
}

TEST_CASE("the GPU of a network is the one that it names, or is asked for") {
  SimulatedNetwork network{
      .hosts = 2,
      .cables = {{.from = 0, .to = 1, .rate = parse_bandwidth("1 Gb/s"), .delay = nanoseconds(50)}},
      .gpu_type = "A100",
      .nvlink = parse_bandwidth("2400 Gb/s")};
  const auto gpu = [&](const ImportOptions& options) {
    return complete_network(network, shipped_catalogue(), options, "t.txt");
  };
  REQUIRE(gpu({}) == "A100-SXM-80GB");
  // The delay is below that of error correction, and the NVLinks are not those of the part.
  REQUIRE(network.remarks.size() == 2);
  REQUIRE(gpu({.gpu = "L40S"}) == "L40S");
  network.gpu_type = "X1";
  REQUIRE(complaint([&] { return gpu({}); }) ==
          "t.txt: the GPU \"X1\" is not known; expected --gpu PART, found none");
  network.gpu_type.clear();
  REQUIRE(complaint([&] { return gpu({}); }) ==
          "t.txt: it has hosts and no GPUs, and each host is one GPU here; expected --gpu PART, "
          "found none");
  network.cables.clear();
  REQUIRE(complaint([&] { return gpu({.gpu = "L40S"}); }) ==
          "t.txt: host 0: expected a link, found none");
}

}  // namespace trainyard
