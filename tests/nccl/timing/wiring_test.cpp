// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/timing/wiring.h"

#include <algorithm>
#include <string>
#include <vector>

#include "support/built_clusters.h"
#include "topology/graph/path.h"

namespace trainyard::nccl {
namespace {

using Orders = std::vector<std::vector<int>>;

// What a wiring asks of a communicator: equal nodes and the rings over their ranks.
Communicator equal_nodes(int nodes, int ranks_per_node, const Orders& rings = {}) {
  Communicator made;
  made.nodes = nodes;
  made.ranks = nodes * ranks_per_node;
  for (int node = 0; node <= nodes; ++node) {
    made.first_rank.push_back(node * ranks_per_node);
  }
  made.node_kind.assign(static_cast<std::size_t>(nodes), 0);
  for (const std::vector<int>& order : rings) {
    made.rings.push_back({.order = order});
  }
  return made;
}

Cluster two_gpus_a_node(int nodes, const std::vector<std::string>& settings = {}) {
  return shipped_cluster("dgx-h100", {.nodes = nodes, .gpus_per_node = 2, .settings = settings});
}

std::vector<LinkKind> kinds_of(const Wiring& wiring, const Wire& wire) {
  std::vector<LinkKind> kinds;
  for (const std::uint32_t port : wire.ports) {
    kinds.push_back(wiring.ports()[port].kind);
  }
  return kinds;
}

// Rate and kind of each link that begins or ends in a server.
std::vector<std::pair<Bandwidth, LinkKind>> server_links(const Topology& topology,
                                                         const std::vector<LinkId>& path) {
  std::vector<std::pair<Bandwidth, LinkKind>> links;
  for (const LinkId id : path) {
    const Link& link = topology.link(id);
    if (topology.node(link.source).server || topology.node(link.target).server) {
      links.emplace_back(link.spec.bandwidth, link.spec.kind);
    }
  }
  return links;
}

std::vector<std::pair<Bandwidth, LinkKind>> ports_of(const Wiring& wiring, const Wire& wire) {
  std::vector<std::pair<Bandwidth, LinkKind>> ports;
  for (const std::uint32_t port : wire.ports) {
    ports.emplace_back(wiring.ports()[port].rate, wiring.ports()[port].kind);
  }
  return ports;
}

// Single GPUs below leaves of two, so that four nodes need a spine.
std::string clos_wiring(int oversubscription) {
  return "name: test\nsource: made up\nnodes: 4\n"
         "server: {template: pcie, gpu: H100-SXM, gpus: 1, nic: ConnectX-7, nics: 1,\n"
         "         cpu: Xeon-SapphireRapids, pcie_switches: 1}\n"
         "fabric: {template: clos, leaf: Quantum2-QM9700, spine: Quantum2-QM9700, cable: 10 m,\n"
         "         nodes_per_leaf: 2, routing: static, oversubscription: " +
         std::to_string(oversubscription) + "}\n";
}

// NCCL's own settings.
const Environment kDefaults;

}  // namespace

TEST_CASE("a connection has as many queue pairs on each port as NCCL_IB_QPS_PER_CONNECTION says",
          "[nccl][timing]") {
  const Communicator nodes = equal_nodes(2, 2);
  Environment environment;
  environment.ib_queue_pairs = 3;
  const Cluster two_ports = shipped_cluster("alibaba-hpn", {.nodes = 2, .gpus_per_node = 2});
  Wiring wiring(two_ports, nodes, environment);
  const Wire wire = wiring.connect({.from = 0, .to = 2, .channel = 5});
  const auto pairs = wiring.queue_pairs(wire.sender, wire.receiver, wire.flow_label);
  REQUIRE(pairs.size() == 6);
  for (std::size_t index = 0; index < pairs.size(); ++index) {
    REQUIRE(pairs[index].source == pairs[index % 2].source);
    REQUIRE(pairs[index].nic_turns->source == pairs[index % 2].nic_turns->source);
    REQUIRE(pairs[index].flow_label == 5 + (index / 2 << 16));
  }
  environment.network = "Socket";
  REQUIRE(wiring.queue_pairs(wire.sender, wire.receiver, 5).size() == 2);
  // EFA has a plugin of its own, and a group of four NICs.
  const Cluster efa = shipped_cluster("aws-p5", {.nodes = 2, .gpus_per_node = 2});
  environment.network = "";
  Wiring other(efa, nodes, environment);
  const Wire fast = other.connect({.from = 0, .to = 2});
  REQUIRE(other.queue_pairs(fast.sender, fast.receiver, 0).size() == 4);
}

TEST_CASE("after fold() equal nodes share their ports", "[nccl][timing]") {
  const Cluster cluster = two_gpus_a_node(3);
  const Communicator communicator = equal_nodes(3, 2);
  Wiring wiring(cluster, communicator, kDefaults);
  const auto connect = [&](int from, int to) {
    return wiring.connect({.from = from, .to = to}).ports;
  };
  wiring.fold(1);
  const std::vector<std::uint32_t> inside = connect(0, 1);
  REQUIRE(!inside.empty());
  REQUIRE(connect(2, 3) == inside);
  REQUIRE(connect(4, 5) == inside);
  REQUIRE(connect(1, 0) != inside);
  REQUIRE(connect(1, 2) == connect(3, 4));
  REQUIRE(connect(5, 0) == connect(3, 4));

  wiring.fold(3);
  REQUIRE(wiring.ports().empty());
  const std::vector<std::uint32_t> first = connect(0, 1);
  for (const std::uint32_t port : connect(2, 3)) {
    REQUIRE(std::find(first.begin(), first.end(), port) == first.end());
  }
}

TEST_CASE("the way out of a NIC and the way in are two ports", "[nccl][timing]") {
  const Cluster cluster = shipped_cluster("h100-1gpu-400g", {.nodes = 2});
  const Communicator communicator = equal_nodes(2, 1);
  Wiring wiring(cluster, communicator, kDefaults);
  wiring.fold(1);
  const Wire there = wiring.connect({.to = 1});
  const Wire back = wiring.connect({.from = 1});
  // Folded, both nodes are one, so the two ways are the same, each link out and in.
  REQUIRE(there.ports == back.ports);
  std::vector<std::uint32_t> distinct = there.ports;
  std::sort(distinct.begin(), distinct.end());
  REQUIRE(std::unique(distinct.begin(), distinct.end()) == distinct.end());
}

TEST_CASE("a connection passes the links that routing says", "[nccl][timing]") {
  const Cluster cluster = two_gpus_a_node(2);
  const Communicator communicator = equal_nodes(2, 2);
  Wiring wiring(cluster, communicator, kDefaults);
  Routing routing(cluster.topology, cluster.routing);
  std::vector<LinkId> path;

  const Wire inside = wiring.connect({.to = 1});
  REQUIRE(routing.route(cluster.gpus[0], cluster.gpus[1], 0, path));
  REQUIRE(inside.transport == Transport::NvLink);
  REQUIRE(ports_of(wiring, inside) == server_links(cluster.topology, path));
  REQUIRE(inside.latency == path_latency(cluster.topology, path));
  REQUIRE(inside.switches == 1);
  REQUIRE(inside.cap == kMaxBandwidth);

  const Wire between = wiring.connect({.from = 1, .to = 3});
  REQUIRE(between.transport == Transport::Network);
  REQUIRE(between.sender.nic == routing.nics(cluster.gpus[1]).front());
  REQUIRE(between.receiver.nic == routing.nics(cluster.gpus[3]).front());
  REQUIRE(routing.route(cluster.gpus[1], cluster.gpus[3], 0, path));
  REQUIRE(ports_of(wiring, between) == server_links(cluster.topology, path));
  // The latency is that from NIC to NIC: what is before and after belongs to NCCL's own.
  REQUIRE(routing.route(between.sender.nic, between.receiver.nic, 0, path));
  REQUIRE(between.latency == path_latency(cluster.topology, path));
}

TEST_CASE("with PXN data leave by the GPU that is near to the NIC", "[nccl][timing]") {
  for (const bool pxn : {false, true}) {
    const Cluster cluster = two_gpus_a_node(2);
    const Communicator communicator = equal_nodes(2, 2);
    Environment environment;
    environment.pxn_disable = !pxn;
    Wiring wiring(cluster, communicator, environment);
    const auto has_nvlink = [&](const Wire& wire) {
      const std::vector<LinkKind> kinds = kinds_of(wiring, wire);
      return std::find(kinds.begin(), kinds.end(), LinkKind::NvLink) != kinds.end();
    };
    // GPU 0 by NIC 1, which is near to GPU 1, to a GPU that this NIC's rail leads to.
    const Wire far = wiring.connect({.to = 3, .nic_out = 1, .nic_in = 1});
    REQUIRE(has_nvlink(far) == pxn);
    REQUIRE(far.transport == Transport::Network);
    // Its own NIC needs no other GPU, and what comes in takes none either.
    REQUIRE(!has_nvlink(wiring.connect({.to = 2, .nic_out = 0, .nic_in = 0})));
    REQUIRE(!has_nvlink(wiring.connect({.to = 2, .nic_out = 0, .nic_in = 1})));
  }
}

TEST_CASE("what host memory stages gets a share of the links", "[nccl][timing]") {
  const Cluster cluster = shipped_cluster("v100-pcie-staged");
  const Communicator communicator = equal_nodes(1, 4);
  Wiring wiring(cluster, communicator, kDefaults);
  const Wire wire = wiring.connect({.to = 1});
  REQUIRE(wire.transport == Transport::Host);
  const double share = cluster.topology.server(ServerId(0)).staging_share;
  REQUIRE(share < 1.0);
  for (const std::uint32_t port : wire.ports) {
    REQUIRE(wiring.ports()[port].staging_share == share);
  }

  const Cluster direct = shipped_cluster("rtx4090-pcie");
  Wiring peers(direct, communicator, kDefaults);
  const Wire straight = peers.connect({.to = 1});
  REQUIRE(straight.transport == Transport::Pcie);
  for (const std::uint32_t port : straight.ports) {
    REQUIRE(peers.ports()[port].staging_share == 1.0);
  }
}

TEST_CASE("connections share the links between switches", "[nccl][timing]") {
  const auto shares = [](const Cluster& cluster) {
    const Communicator communicator = equal_nodes(4, 1);
    Wiring wiring(cluster, communicator, kDefaults);
    // All leave their leaf.
    std::vector<Wire> wires;
    for (const auto& [from, to] : {std::pair{0, 2}, std::pair{1, 3}}) {
      wires.push_back(wiring.connect({.from = from, .to = to}));
    }
    return wiring.fabric_shares(wires);
  };
  const std::vector<Bandwidth> full = shares(cluster_of(clos_wiring(1)));
  const std::vector<Bandwidth> half = shares(cluster_of(clos_wiring(2)));
  for (std::size_t i = 0; i < full.size(); ++i) {
    REQUIRE(full[i] < kMaxBandwidth);
    REQUIRE(half[i].bits_per_second() == full[i].bits_per_second() / 2);
  }
  // One switch for all: nothing to share.
  const std::vector<Bandwidth> free = shares(shipped_cluster("h100-1gpu-400g", {.nodes = 4}));
  REQUIRE(free == std::vector<Bandwidth>(2, kMaxBandwidth));
}

TEST_CASE("a ring repeats itself after one node, after two, or never", "[nccl][timing]") {
  const Cluster cluster = two_gpus_a_node(4);
  const auto period = [&](const Orders& rings, int kind_of_last = 0) {
    Communicator communicator = equal_nodes(4, 2, rings);
    communicator.node_kind.back() = kind_of_last;
    return Wiring(cluster, communicator, kDefaults).ring_period();
  };
  const std::vector<int> same = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<int> alternating = {0, 1, 3, 2, 4, 5, 7, 6};
  const std::vector<int> last_differs = {0, 1, 2, 3, 4, 5, 7, 6};
  REQUIRE(period({same}) == 1);
  // Rank 0 comes first, but the ring enters its node at rank 1.
  REQUIRE(period({{0, 3, 2, 5, 4, 7, 6, 1}}) == 1);
  REQUIRE(period({same, alternating}) == 2);
  REQUIRE(period({same, last_differs}) == 4);
  REQUIRE(period({same}, 1) == 4);
}

}  // namespace trainyard::nccl
