// SPDX-License-Identifier: Apache-2.0
// Routes are compared with a naive search by relaxation on random clusters: they are valid walks
// that keep the rules of forwarding, and no walk that keeps them is shorter. Then the choice among
// equals: ECMP spreads and repeats, Static has no collisions where fat trees promise none.
#include "support/catch.h"

#include "topology/routing/routing.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace trainyard {
namespace {

using namespace literals;

constexpr std::uint32_t kFar = std::numeric_limits<std::uint32_t>::max();

LinkSpec link(LinkKind kind) {
  return {.kind = kind, .bandwidth = gigabits_per_second(100), .latency = 10_ns};
}

NodeId add(TopologyBuilder& builder, NodeKind kind, const std::string& name,
           std::optional<ServerId> server = std::nullopt) {
  return builder.add_node({.kind = kind, .name = name, .latency = 3_ns, .server = server});
}

// `leaves` x `hosts` GPUs attached directly, `spines` spines, `parallel` links a pair.
struct Clos {
  int leaves;
  int hosts;
  int spines;
  int parallel = 1;

  [[nodiscard]] Topology build() const {
    TopologyBuilder builder;
    for (int gpu = 0; gpu < leaves * hosts; ++gpu) {
      add(builder, NodeKind::Gpu, "gpu" + std::to_string(gpu));
    }
    const auto first_leaf = static_cast<std::uint32_t>(leaves * hosts);
    for (int leaf = 0; leaf < leaves; ++leaf) {
      const NodeId id = add(builder, NodeKind::Switch, "leaf" + std::to_string(leaf));
      for (int host = 0; host < hosts; ++host) {
        builder.add_duplex_link(NodeId(static_cast<std::uint32_t>(leaf * hosts + host)), id,
                                link(LinkKind::Network));
      }
    }
    std::vector<NodeId> tops;
    for (int spine = 0; spine < spines; ++spine) {
      tops.push_back(add(builder, NodeKind::Switch, "spine" + std::to_string(spine)));
    }
    for (int leaf = 0; leaf < leaves; ++leaf) {
      for (const NodeId spine : tops) {
        for (int i = 0; i < parallel; ++i) {
          builder.add_duplex_link(NodeId(first_leaf + static_cast<std::uint32_t>(leaf)), spine,
                                  link(LinkKind::Network));
        }
      }
    }
    return std::move(builder).build();
  }
};

std::uint32_t cost(LinkKind kind) {
  switch (kind) {
    case LinkKind::Pcie:
      return 16;
    case LinkKind::Socket:
      return 64;
    default:
      return 1;
  }
}

// Least costs from `source` over links of the fabric, or over all others, through nodes that
// forward there.
std::vector<std::uint32_t> naive_costs(const Topology& topology, NodeId source, bool in_fabric) {
  std::vector<std::uint32_t> costs(topology.node_count(), kFar);
  costs[source.value()] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t index = 0; index < topology.link_count(); ++index) {
      const Link& edge = topology.link(LinkId(index));
      const NodeKind kind = topology.node(edge.source).kind;
      const bool forwards =
          in_fabric ? kind == NodeKind::Switch : kind != NodeKind::Gpu && kind != NodeKind::Nic;
      const bool is_fabric = edge.spec.kind == LinkKind::Network;
      const std::uint32_t from = costs[edge.source.value()];
      if (is_fabric != in_fabric || from == kFar || (edge.source != source && !forwards)) {
        continue;
      }
      if (from + cost(edge.spec.kind) < costs[edge.target.value()]) {
        costs[edge.target.value()] = from + cost(edge.spec.kind);
        changed = true;
      }
    }
  }
  return costs;
}

std::uint32_t nearest_nic_cost(const Topology& topology, const std::vector<std::uint32_t>& costs) {
  std::uint32_t min = kFar;
  for (std::uint32_t node = 0; node < topology.node_count(); ++node) {
    if (topology.node(NodeId(node)).kind == NodeKind::Nic) {
      min = std::min(min, costs[node]);
    }
  }
  return min;
}

void require_walk(const Topology& topology, NodeId source, NodeId target,
                  const std::vector<LinkId>& path) {
  NodeId at = source;
  for (const LinkId hop : path) {
    REQUIRE(topology.link(hop).source == at);
    at = topology.link(hop).target;
    REQUIRE((at == target || topology.node(at).kind != NodeKind::Gpu));
  }
  REQUIRE(at == target);
}

// The path in three parts, each as short as the naive search finds it.
void require_shortest(const Topology& topology, NodeId source, NodeId target,
                      const std::vector<LinkId>& path) {
  const auto local_from_source = naive_costs(topology, source, false);
  const auto is_fabric = [&](LinkId hop) {
    return topology.link(hop).spec.kind == LinkKind::Network;
  };
  const auto total = [&](auto first, auto last) {
    return std::accumulate(first, last, 0U, [&](std::uint32_t sum, LinkId hop) {
      return sum + cost(topology.link(hop).spec.kind);
    });
  };
  if (local_from_source[target.value()] != kFar) {
    REQUIRE(std::none_of(path.begin(), path.end(), is_fabric));
    REQUIRE(total(path.begin(), path.end()) == local_from_source[target.value()]);
    return;
  }
  const auto enter = std::find_if(path.begin(), path.end(), is_fabric);
  const auto leave = std::find_if_not(enter, path.end(), is_fabric);
  REQUIRE(enter != path.end());
  REQUIRE(std::none_of(leave, path.end(), is_fabric));
  const NodeId first_nic = topology.link(*enter).source;
  const NodeId last_nic = topology.link(*(leave - 1)).target;
  const auto local_from_target = naive_costs(topology, target, false);
  REQUIRE(total(path.begin(), enter) == nearest_nic_cost(topology, local_from_source));
  REQUIRE(total(leave, path.end()) == nearest_nic_cost(topology, local_from_target));
  REQUIRE(total(enter, leave) == naive_costs(topology, first_nic, true)[last_nic.value()]);
}

// A random cluster: servers of different make below a random connected fabric.
class RandomCluster {
 public:
  explicit RandomCluster(std::uint32_t seed) : random_(seed) {
    const int servers = 1 + below(4);
    for (int server = 0; server < servers; ++server) {
      add_random_server();
    }
    std::vector<NodeId> switches;
    const int count = 1 + below(6);
    for (int index = 0; index < count; ++index) {
      switches.push_back(add(builder_, NodeKind::Switch, "switch"));
      if (index > 0) {
        builder_.add_duplex_link(switches.back(), pick(switches, index), link(LinkKind::Network));
      }
    }
    for (int extra = below(10); extra > 0 && count > 1; --extra) {
      const NodeId a = pick(switches, count);
      const NodeId b = pick(switches, count);
      if (a != b) {
        builder_.add_link(a, b, link(LinkKind::Network));
      }
    }
    for (const NodeId nic : nics_) {
      for (int port = 1 + below(2); port > 0; --port) {
        builder_.add_duplex_link(nic, pick(switches, count), link(LinkKind::Network));
      }
    }
  }

  Topology build() && { return std::move(builder_).build(); }
  [[nodiscard]] const std::vector<NodeId>& gpus() const { return gpus_; }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<std::uint32_t>(bound)); }
  NodeId pick(const std::vector<NodeId>& nodes, int among) {
    return nodes[static_cast<std::size_t>(below(among))];
  }

  void add_random_server() {
    const ServerId server = builder_.add_server();
    std::vector<NodeId> hubs;
    const int count = 1 + below(5);
    for (int index = 0; index < count; ++index) {
      const NodeKind kind = below(2) == 0 ? NodeKind::Cpu : NodeKind::PcieSwitch;
      hubs.push_back(add(builder_, kind, "hub", server));
      if (index > 0) {
        const LinkKind join = below(2) == 0 ? LinkKind::Pcie : LinkKind::Socket;
        builder_.add_duplex_link(hubs.back(), pick(hubs, index), link(join));
      }
    }
    for (int extra = below(4); extra > 0 && count > 1; --extra) {
      builder_.add_duplex_link(hubs[0], hubs[1 + static_cast<std::size_t>(below(count - 1))],
                               link(LinkKind::Pcie));
    }
    std::vector<NodeId> own;
    for (int gpu = 1 + below(5); gpu > 0; --gpu) {
      own.push_back(add(builder_, NodeKind::Gpu, "gpu", server));
      builder_.add_duplex_link(own.back(), pick(hubs, count), link(LinkKind::Pcie));
    }
    const auto gpus = static_cast<int>(own.size());
    if (below(2) == 0) {
      const NodeId nvswitch = add(builder_, NodeKind::NvSwitch, "nvswitch", server);
      for (int ends = 1 + below(gpus), gpu = 0; gpu < ends; ++gpu) {
        builder_.add_duplex_link(own[static_cast<std::size_t>(gpu)], nvswitch,
                                 link(LinkKind::NvLink));
      }
    }
    for (int pairs = below(5); pairs > 0 && gpus > 1; --pairs) {
      builder_.add_duplex_link(own[0], own[1 + static_cast<std::size_t>(below(gpus - 1))],
                               link(LinkKind::NvLink));
    }
    for (int nic = 1 + below(3); nic > 0; --nic) {
      nics_.push_back(add(builder_, NodeKind::Nic, "nic", server));
      builder_.add_duplex_link(nics_.back(), pick(hubs, count), link(LinkKind::Pcie));
    }
    gpus_.insert(gpus_.end(), own.begin(), own.end());
  }

  std::mt19937 random_;
  TopologyBuilder builder_;
  std::vector<NodeId> gpus_;
  std::vector<NodeId> nics_;
};

TEST_CASE("on random clusters routes are valid and as short as a naive search finds them") {
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    INFO("seed=" << seed);
    RandomCluster cluster(seed);
    const std::vector<NodeId> gpus = cluster.gpus();
    const Topology topology = std::move(cluster).build();
    const auto policy = seed % 2 == 0 ? RoutingPolicy::Static : RoutingPolicy::EcmpHash;
    Routing routing(topology, {.policy = policy, .seed = seed});
    std::vector<LinkId> path;
    for (const NodeId source : gpus) {
      for (const NodeId target : gpus) {
        REQUIRE(routing.route(source, target, seed, path));
        require_walk(topology, source, target, path);
        if (source != target) {
          require_shortest(topology, source, target, path);
        }
      }
    }
  }
}

TEST_CASE("a node to itself is an empty path, and no way gives false and an empty path") {
  TopologyBuilder builder;
  const NodeId a = add(builder, NodeKind::Gpu, "a");
  const NodeId b = add(builder, NodeKind::Gpu, "b");
  const NodeId c = add(builder, NodeKind::Gpu, "c");
  builder.add_duplex_link(a, b, link(LinkKind::NvLink));
  builder.add_duplex_link(b, c, link(LinkKind::NvLink));
  const Topology topology = std::move(builder).build();
  Routing routing(topology, {});
  std::vector<LinkId> path = {LinkId(0)};
  REQUIRE(routing.route(a, a, 0, path));
  REQUIRE(path.empty());
  REQUIRE(routing.route(a, b, 0, path));
  REQUIRE(path.size() == 1);
  REQUIRE(!routing.route(a, c, 0, path));  // GPUs do not forward.
  REQUIRE(path.empty());
}

TEST_CASE("two NICs joined back to back need no switch") {
  TopologyBuilder builder;
  std::vector<NodeId> gpus;
  std::vector<NodeId> nics;
  for (int server = 0; server < 2; ++server) {
    const ServerId id = builder.add_server();
    gpus.push_back(add(builder, NodeKind::Gpu, "gpu", id));
    nics.push_back(add(builder, NodeKind::Nic, "nic", id));
    builder.add_duplex_link(gpus.back(), nics.back(), link(LinkKind::Pcie));
  }
  builder.add_duplex_link(nics[0], nics[1], link(LinkKind::Network));
  const Topology topology = std::move(builder).build();
  Routing routing(topology, {});
  std::vector<LinkId> path;
  REQUIRE(routing.route(gpus[0], gpus[1], 0, path));
  REQUIRE(path.size() == 3);
  REQUIRE(path_latency(topology, path) == 10_ns * 3 + 3_ns * 2);
}

// One server of `gpus` GPUs and `nics` NICs below one PCIe switch, and one more GPU far away.
struct Binding {
  Topology topology;
  std::uint32_t gpus;

  // The NICs that each GPU uses for flow labels 0 to 7, as positions among the NICs.
  [[nodiscard]] std::vector<std::set<std::uint32_t>> used() const {
    Routing routing(topology, {});
    std::vector<std::set<std::uint32_t>> result(gpus);
    std::vector<LinkId> path;
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
      for (std::uint32_t label = 0; label < 8; ++label) {
        REQUIRE(routing.route(NodeId(gpu + 1), NodeId(0), label, path));
        result[gpu].insert(topology.link(path[1]).target.value() - gpus - 1);
      }
    }
    return result;
  }
};

Binding binding(std::uint32_t gpus, std::uint32_t nics) {
  TopologyBuilder builder;
  const NodeId far = add(builder, NodeKind::Gpu, "far");
  const ServerId server = builder.add_server();
  std::vector<NodeId> devices;
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
    devices.push_back(add(builder, NodeKind::Gpu, "gpu", server));
  }
  for (std::uint32_t nic = 0; nic < nics; ++nic) {
    devices.push_back(add(builder, NodeKind::Nic, "nic", server));
  }
  const NodeId pcie = add(builder, NodeKind::PcieSwitch, "pcie", server);
  const NodeId leaf = add(builder, NodeKind::Switch, "leaf");
  builder.add_duplex_link(far, leaf, link(LinkKind::Network));
  for (const NodeId device : devices) {
    builder.add_duplex_link(device, pcie, link(LinkKind::Pcie));
  }
  for (std::uint32_t nic = gpus; nic < gpus + nics; ++nic) {
    builder.add_duplex_link(devices[nic], leaf, link(LinkKind::Network));
  }
  return {std::move(builder).build(), gpus};
}

TEST_CASE("GPUs and NICs below one switch pair off by position") {
  using Sets = std::vector<std::set<std::uint32_t>>;
  REQUIRE(binding(2, 2).used() == Sets{{0}, {1}});
  REQUIRE(binding(4, 2).used() == Sets{{0}, {1}, {0}, {1}});
  REQUIRE(binding(1, 4).used() == Sets{{0, 1, 2, 3}});
  REQUIRE(binding(2, 3).used() == Sets{{0, 2}, {1}});
}

TEST_CASE("what a NIC sends to another one of its server goes by the leaf") {
  const Binding two = binding(2, 2);
  Routing routing(two.topology, {});
  std::vector<LinkId> path;
  REQUIRE(routing.route(NodeId(3), NodeId(4), 0, path));
  REQUIRE(path.size() == 2);
  for (const LinkId hop : path) {
    REQUIRE(two.topology.link(hop).spec.kind == LinkKind::Network);
  }
  // GPUs stay below their PCIe switch, and so do a GPU and a NIC.
  for (const NodeId target : {NodeId(2), NodeId(4)}) {
    REQUIRE(routing.route(NodeId(1), target, 0, path));
    REQUIRE(path.size() == 2);
    REQUIRE(two.topology.link(path.front()).spec.kind == LinkKind::Pcie);
  }
}

TEST_CASE("ECMP spreads flow labels over the spines like a fair die") {
  constexpr int spines = 16;
  constexpr int labels = 16'000;
  const Topology topology = Clos{.leaves = 2, .hosts = 1, .spines = spines}.build();
  Routing routing(topology, {.seed = 7});
  std::vector<int> counts(spines, 0);
  std::vector<LinkId> path;
  for (std::uint32_t label = 0; label < labels; ++label) {
    REQUIRE(routing.route(NodeId(0), NodeId(1), label, path));
    ++counts[topology.link(path[1]).target.value() - 4];
  }
  double chi_square = 0.0;
  for (const int count : counts) {
    const double error = count - labels / spines;
    chi_square += error * error / (labels / spines);
  }
  // 15 degrees of freedom: 37.7 is exceeded once in a thousand, 4.6 undercut once in two hundred.
  REQUIRE(chi_square < 37.7);
  REQUIRE(chi_square > 4.6);
}

TEST_CASE("ECMP repeats with the seed and differs with another") {
  const Topology topology = Clos{.leaves = 4, .hosts = 4, .spines = 8}.build();
  const auto all_paths = [&](std::uint64_t seed) {
    Routing routing(topology, {.seed = seed});
    std::vector<std::vector<LinkId>> paths;
    for (std::uint32_t source = 0; source < 16; ++source) {
      for (std::uint32_t target = 0; target < 16; ++target) {
        std::vector<LinkId> path;
        REQUIRE(routing.route(NodeId(source), NodeId(target), 3, path));
        paths.push_back(path);
      }
    }
    return paths;
  };
  REQUIRE(all_paths(1) == all_paths(1));
  REQUIRE(all_paths(1) != all_paths(2));
}

TEST_CASE("Adaptive spreads by the connections so far, until they are forgotten") {
  const Topology topology = Clos{.leaves = 4, .hosts = 4, .spines = 8}.build();
  Routing routing(topology, {.policy = RoutingPolicy::Adaptive});
  const auto eight_paths = [&] {
    std::vector<std::vector<LinkId>> paths(8);
    for (std::vector<LinkId>& path : paths) {
      (void)routing.route(NodeId(0), NodeId(4), 3, path);
    }
    return paths;
  };
  const auto first = eight_paths();
  // The same flow label eight times: all eight spines, one after the other.
  REQUIRE(std::set(first.begin(), first.end()).size() == 8);
  (void)eight_paths();
  std::vector<LinkId> other;
  REQUIRE(routing.route(NodeId(0), NodeId(8), 3, other));
  REQUIRE(eight_paths() != first);
  routing.forget_connections();
  REQUIRE(eight_paths() == first);
}

TEST_CASE("Static gives each shift between two leaves a link of its own, up and down") {
  for (const auto& [spines, parallel] : {std::pair(8, 1), std::pair(4, 2), std::pair(2, 4)}) {
    const Topology topology =
        Clos{.leaves = 3, .hosts = 8, .spines = spines, .parallel = parallel}.build();
    Routing routing(topology, {.policy = RoutingPolicy::Static});
    for (std::uint32_t shift = 0; shift < 8; ++shift) {
      std::set<LinkId> used;
      std::vector<LinkId> path;
      for (std::uint32_t host = 0; host < 8; ++host) {
        REQUIRE(routing.route(NodeId(host), NodeId(8 + (host + shift) % 8), host, path));
        REQUIRE(path.size() == 4);
        used.insert(path.begin(), path.end());
      }
      REQUIRE(used.size() == 8 * 4);
    }
  }
}

TEST_CASE("Static in three tiers spreads the targets of a pod over all cores") {
  // 2 pods of 2 leaves of 2 hosts, 2 spines a pod, 4 cores: spine s of each pod joins cores 2s,
  // 2s+1.
  TopologyBuilder builder;
  for (int gpu = 0; gpu < 8; ++gpu) {
    add(builder, NodeKind::Gpu, "gpu");
  }
  std::vector<NodeId> cores;
  for (int core = 0; core < 4; ++core) {
    cores.push_back(add(builder, NodeKind::Switch, "core"));
  }
  for (std::uint32_t pod = 0; pod < 2; ++pod) {
    const NodeId leaves[] = {add(builder, NodeKind::Switch, "leaf"),
                             add(builder, NodeKind::Switch, "leaf")};
    for (std::uint32_t host = 0; host < 4; ++host) {
      builder.add_duplex_link(NodeId(pod * 4 + host), leaves[host / 2], link(LinkKind::Network));
    }
    for (std::uint32_t spine = 0; spine < 2; ++spine) {
      const NodeId id = add(builder, NodeKind::Switch, "spine");
      builder.add_duplex_link(leaves[0], id, link(LinkKind::Network));
      builder.add_duplex_link(leaves[1], id, link(LinkKind::Network));
      builder.add_duplex_link(id, cores[2 * spine], link(LinkKind::Network));
      builder.add_duplex_link(id, cores[2 * spine + 1], link(LinkKind::Network));
    }
  }
  const Topology topology = std::move(builder).build();
  Routing routing(topology, {.policy = RoutingPolicy::Static});
  std::set<LinkId> used;
  std::vector<LinkId> path;
  for (std::uint32_t host = 0; host < 4; ++host) {
    REQUIRE(routing.route(NodeId(host), NodeId(4 + host), 0, path));
    REQUIRE(path.size() == 6);
    used.insert(path.begin(), path.end());
  }
  REQUIRE(used.size() == 4 * 6);
}

TEST_CASE("latency counts links and the nodes in between, bandwidth is the least") {
  TopologyBuilder builder;
  const NodeId a = add(builder, NodeKind::Gpu, "a");
  const NodeId middle = add(builder, NodeKind::Switch, "middle");
  const NodeId b = add(builder, NodeKind::Gpu, "b");
  LinkSpec slow = link(LinkKind::Network);
  slow.bandwidth = gigabits_per_second(40);
  const LinkId first = builder.add_link(a, middle, link(LinkKind::Network));
  const LinkId second = builder.add_link(middle, b, slow);
  const Topology topology = std::move(builder).build();
  REQUIRE(path_latency(topology, {}) == SimTime());
  REQUIRE(path_latency(topology, {first, second}) == 23_ns);
  REQUIRE(path_bandwidth(topology, {first, second}) == gigabits_per_second(40));
  // A switch that is an end of its own is passed once: on the way in.
  REQUIRE(path_latency(topology, {first}) == 13_ns);
  REQUIRE(path_latency(topology, {second}) == 10_ns);
}

TEST_CASE("a switch can be either end of a route, and a GPU reaches it through its NIC") {
  TopologyBuilder builder;
  const ServerId server = builder.add_server();
  const NodeId nvswitch = add(builder, NodeKind::NvSwitch, "nvswitch", server);
  const NodeId leaf = add(builder, NodeKind::Switch, "leaf");
  const NodeId other_leaf = add(builder, NodeKind::Switch, "leaf");
  const NodeId spine = add(builder, NodeKind::Switch, "spine");
  std::vector<NodeId> gpus;
  std::vector<NodeId> nics;
  for (int index = 0; index < 2; ++index) {
    gpus.push_back(add(builder, NodeKind::Gpu, "gpu", server));
    nics.push_back(add(builder, NodeKind::Nic, "nic", server));
    builder.add_duplex_link(gpus.back(), nvswitch, link(LinkKind::NvLink));
    builder.add_duplex_link(gpus.back(), nics.back(), link(LinkKind::Pcie));
    builder.add_duplex_link(nics.back(), leaf, link(LinkKind::Network));
  }
  builder.add_duplex_link(leaf, spine, link(LinkKind::Network));
  builder.add_duplex_link(other_leaf, spine, link(LinkKind::Network));
  const Topology topology = std::move(builder).build();
  for (const RoutingPolicy policy : {RoutingPolicy::EcmpHash, RoutingPolicy::Static}) {
    Routing routing(topology, {.policy = policy});
    const auto nodes_on = [&](NodeId from, NodeId to) {
      std::vector<LinkId> path;
      std::vector<NodeId> nodes{from};
      REQUIRE(routing.route(from, to, 3, path));
      for (const LinkId id : path) {
        REQUIRE(topology.link(id).source == nodes.back());
        nodes.push_back(topology.link(id).target);
      }
      return nodes;
    };
    using Nodes = std::vector<NodeId>;
    REQUIRE(nodes_on(gpus[1], nvswitch) == Nodes{gpus[1], nvswitch});
    REQUIRE(nodes_on(nvswitch, gpus[0]) == Nodes{nvswitch, gpus[0]});
    REQUIRE(nodes_on(gpus[1], leaf) == Nodes{gpus[1], nics[1], leaf});
    REQUIRE(nodes_on(leaf, gpus[0]) == Nodes{leaf, nics[0], gpus[0]});
    REQUIRE(nodes_on(leaf, spine) == Nodes{leaf, spine});
    REQUIRE(nodes_on(spine, other_leaf) == Nodes{spine, other_leaf});
    REQUIRE(nodes_on(other_leaf, gpus[1]) == Nodes{other_leaf, spine, leaf, nics[1], gpus[1]});
    std::vector<LinkId> path;
    REQUIRE_FALSE(routing.route(nvswitch, leaf, 0, path));
  }
}

TEST_CASE("between two switches the flow label counts through the cables, whatever the policy") {
  TopologyBuilder builder;
  const NodeId leaf = add(builder, NodeKind::Switch, "leaf");
  const NodeId spine = add(builder, NodeKind::Switch, "spine");
  builder.add_duplex_link(add(builder, NodeKind::Gpu, "gpu"), leaf, link(LinkKind::Network));
  std::vector<LinkId> cables;
  for (int cable = 0; cable < 3; ++cable) {
    cables.push_back(builder.add_duplex_link(leaf, spine, link(LinkKind::Network)));
  }
  const Topology topology = std::move(builder).build();
  for (const RoutingPolicy policy : {RoutingPolicy::EcmpHash, RoutingPolicy::Static}) {
    Routing routing(topology, {.policy = policy});
    for (std::uint32_t label = 0; label < 7; ++label) {
      std::vector<LinkId> path;
      REQUIRE(routing.route(leaf, spine, label, path));
      REQUIRE(path == std::vector<LinkId>{cables[label % 3]});
      REQUIRE(routing.route(spine, leaf, label, path));
      REQUIRE(path == std::vector<LinkId>{LinkId(cables[label % 3].value() + 1)});
    }
  }
}

}  // namespace
}  // namespace trainyard
