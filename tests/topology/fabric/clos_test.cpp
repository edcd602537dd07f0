// SPDX-License-Identifier: Apache-2.0
// The graphs that Clos templates build: links by formula, what is joined to what, full bisection of
// the fat tree by a maximum flow, and routes that both routers agree on.
#include "support/catch.h"

#include "topology/fabric/clos.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/clos_reading.h"
#include "topology/graph/dependency_graph.h"
#include "topology/routing/general_router.h"
#include "topology/routing/layer.h"
#include "topology/routing/up_down_router.h"

namespace trainyard {
namespace {

using namespace literals;

const std::string kClosRail =
    "template: rail-optimised, leaf: Quantum2-QM9700, spine: Quantum2-QM9700";
const std::string kClosClos = "template: clos, leaf: Quantum2-QM9700, spine: Quantum2-QM9700";
const std::string kClosCore = ", core: Quantum2-QM9700, tiers: 3";

std::string fat_tree(int k) {
  return "template: fat-tree, switch: Quantum2-QM9700, k: " + std::to_string(k);
}

std::vector<NodeId> all_nics(const BuiltClos& clos) {
  std::vector<NodeId> nics;
  for (const ServerNodes& server : clos.servers) {
    nics.insert(nics.end(), server.nics.begin(), server.nics.end());
  }
  return nics;
}

// The names of the switches that a NIC has links to, in the order of its ports.
std::vector<std::string> leaves_of(const BuiltClos& clos, NodeId nic) {
  std::vector<std::string> names;
  for (const LinkId id : clos.topology.links_from(nic)) {
    names.push_back(clos.topology.node(clos.topology.link(id).target).name);
  }
  return names;
}

// The most paths from some nodes to others that share no link (Ford and Fulkerson, 1956): paths are
// added one by one, each free to take a link of an earlier one back.
class DisjointPaths {
 public:
  explicit DisjointPaths(const Topology& topology)
      : topology_(topology), taken_(topology.link_count(), false), into_(topology.node_count()) {
    for (std::uint32_t id = 0; id < topology.link_count(); ++id) {
      into_[topology.link(LinkId(id)).target.value()].push_back(LinkId(id));
    }
  }

  int count(const std::vector<NodeId>& sources, const std::set<NodeId>& targets) {
    int paths = 0;
    while (add(sources, targets)) {
      ++paths;
    }
    return paths;
  }

 private:
  struct Step {
    bool seen = false;
    bool back = false;
    LinkId link;
  };

  bool add(const std::vector<NodeId>& sources, const std::set<NodeId>& targets) {
    steps_.assign(topology_.node_count(), {});
    std::vector<NodeId> queue = sources;
    const std::set<NodeId> starts(sources.begin(), sources.end());
    for (const NodeId source : sources) {
      steps_[source.value()].seen = true;
    }
    for (std::size_t next = 0; next < queue.size(); ++next) {
      NodeId at = queue[next];
      if (targets.contains(at)) {
        while (!starts.contains(at)) {
          const Step& step = steps_[at.value()];
          taken_[step.link.value()] = !step.back;
          const Link& link = topology_.link(step.link);
          at = step.back ? link.target : link.source;
        }
        return true;
      }
      const auto go = [&](NodeId to, LinkId link, bool back) {
        if (taken_[link.value()] == back && !steps_[to.value()].seen) {
          steps_[to.value()] = {true, back, link};
          queue.push_back(to);
        }
      };
      for (const LinkId link : topology_.links_from(at)) {
        go(topology_.link(link).target, link, false);
      }
      for (const LinkId link : into_[at.value()]) {
        go(topology_.link(link).source, link, true);
      }
    }
    return false;
  }

  const Topology& topology_;
  std::vector<bool> taken_;
  std::vector<std::vector<LinkId>> into_;
  std::vector<Step> steps_;
};

// Between the first half of the NICs and the second, in links.
int bisection(const BuiltClos& clos) {
  std::vector<NodeId> nics = all_nics(clos);
  const auto middle = nics.begin() + static_cast<std::ptrdiff_t>(nics.size() / 2);
  const std::set<NodeId> targets(middle, nics.end());
  nics.erase(middle, nics.end());
  return DisjointPaths(clos.topology).count(nics, targets);
}

TEST_CASE("links run at the slower end's rate, with FEC, cable and optics in their latency") {
  const ClosSpec spec =
      read_clos(32, servers_of(8, 200), kClosClos + ", spine_cable: 30 m, optics: true");
  REQUIRE(spec.host_links[0].bandwidth == gigabits_per_second(192));
  REQUIRE(spec.host_links[0].latency == 50_ns + 100_ns + 100_ns);
  REQUIRE(spec.spine_link.bandwidth == gigabits_per_second(384));
  REQUIRE(spec.spine_link.latency == 150_ns + 100_ns + 100_ns);
  REQUIRE(spec.leaf.latency == 130_ns);
  REQUIRE(spec.leaf.in_network_reduction);
}

TEST_CASE("links above the leaves carry what the best NICs do, cores hang on their own cables") {
  std::vector<ServerSpec> servers(600, servers_of(8));
  servers[7].network_efficiency = 0.98;
  servers[8].nic_speed = gigabits_per_second(100);
  const ClosSpec spec =
      ClosReading(servers, kClosClos + ", core: Tomahawk3, core_cable: 100 m, spine_cable: 20 m")
          .spec();
  REQUIRE(spec.host_links[7].bandwidth == gigabits_per_second(392));
  REQUIRE(spec.host_links[8].bandwidth == gigabits_per_second(96));
  REQUIRE(spec.spine_link.bandwidth == gigabits_per_second(392));
  REQUIRE(spec.spine_link.latency == 100_ns + 100_ns);
  REQUIRE(spec.core_link.bandwidth == gigabits_per_second(392));
  REQUIRE(spec.core_link.latency == 500_ns + 100_ns);
  REQUIRE(spec.core.ports == 32);
}

TEST_CASE("routing is read with its seed") {
  const auto plain = ClosReading(2, servers_of(8), kClosClos).fabric();
  REQUIRE(plain->routing().policy == RoutingPolicy::EcmpHash);
  const auto chosen =
      ClosReading(2, servers_of(8), kClosClos + ", routing: static, routing_seed: 5").fabric();
  REQUIRE(chosen->routing().policy == RoutingPolicy::Static);
  REQUIRE(chosen->routing().seed == 5);
}

TEST_CASE("a fabric has the nodes and links that its size says") {
  for (const int nodes : {1, 5, 33, 64, 300}) {
    for (const std::string& layout : {kClosRail + kClosCore, kClosClos + kClosCore,
                                      kClosClos + ", core: Quantum2-QM9700", fat_tree(64)}) {
      INFO(nodes << " servers, " << layout);
      const ClosSpec spec = read_clos(nodes, servers_of(8), layout);
      const BuiltClos clos = build_clos(nodes, servers_of(8), layout);
      const int switches = spec.leaves + spec.spines + spec.cores;
      const int links = nodes * 8 + spec.leaves * spec.uplinks + spec.spines * spec.spine_uplinks;
      REQUIRE(clos.topology.node_count() == static_cast<std::uint32_t>(nodes * 8 + switches));
      REQUIRE(clos.topology.link_count() == static_cast<std::uint32_t>(2 * links));
      REQUIRE(clos.routing.fabric.router == &make_router<UpDownRouter>);
      REQUIRE(clos.routing.fabric.switches == static_cast<std::uint32_t>(switches));
      REQUIRE(clos.topology.node(clos.routing.fabric.first_switch).name == "leaf0");
      std::map<NodeId, int> ports;
      for (std::uint32_t id = 0; id < clos.topology.link_count(); ++id) {
        ++ports[clos.topology.link(LinkId(id)).source];
      }
      for (const auto& [node, used] : ports) {
        const Node& device = clos.topology.node(node);
        REQUIRE((device.kind == NodeKind::Nic || used <= device.ports));
      }
    }
  }
}

TEST_CASE("spine i of every pod meets in core group i") {
  const std::string text = kClosClos + ", core: Quantum2-QM9700, leaves_per_pod: 4, tiers: 3";
  const ClosSpec spec = read_clos(60, servers_of(8), text);
  const BuiltClos clos = build_clos(60, servers_of(8), text);
  REQUIRE(spec.pods == 4);
  for (int spine = 0; spine < spec.spines; ++spine) {
    const NodeId node = *clos.topology.find("spine" + std::to_string(spine));
    std::map<std::string, int> cables;
    for (const LinkId id : clos.topology.links_from(node)) {
      ++cables[clos.topology.node(clos.topology.link(id).target).name];
    }
    const int pod = spine / spec.spines_per_pod();
    for (int leaf = 0; leaf < spec.leaves; ++leaf) {
      const int own = leaf / spec.leaves_per_pod == pod ? spec.uplinks / spec.spines_per_pod() : 0;
      REQUIRE(cables["leaf" + std::to_string(leaf)] == own);
    }
    const int group = spine % spec.spines_per_pod();
    for (int core = 0; core < spec.cores; ++core) {
      const int own =
          core / spec.cores_per_spine() == group ? spec.spine_uplinks / spec.cores_per_spine() : 0;
      REQUIRE(cables["core" + std::to_string(core)] == own);
    }
  }
}

TEST_CASE("a k-ary fat tree has full bisection") {
  for (const int k : {2, 4, 6, 8}) {
    INFO("k=" << k);
    const BuiltClos clos = build_clos(k * k * k / 4, servers_of(1), fat_tree(k));
    REQUIRE(bisection(clos) == k * k * k / 8);
    REQUIRE(UpDownRouter(clos.topology).diameter() == 4);
  }
}

TEST_CASE("oversubscription at a tier divides the bisection") {
  // 16 servers of 8 NICs a pod of 4 leaves; two or four pods.
  const std::string pods = kClosClos + kClosCore + ", leaves_per_pod: 4";
  for (const int nodes : {32, 64}) {
    REQUIRE(bisection(build_clos(nodes, servers_of(8), pods)) == nodes * 8 / 2);
    for (const int ratio : {2, 4, 8}) {
      const std::string over = ", spine_oversubscription: " + std::to_string(ratio);
      REQUIRE(bisection(build_clos(nodes, servers_of(8), pods + over)) == nodes * 8 / 2 / ratio);
    }
  }
  const std::string leaf = ", nodes_per_leaf: 4, oversubscription: 4, leaves_per_pod: 4";
  REQUIRE(bisection(build_clos(32, servers_of(8), kClosClos + kClosCore + leaf)) == 32 * 8 / 2 / 4);
}

TEST_CASE("each port of a NIC is in a plane of its own") {
  for (const std::string& layout : {kClosClos, kClosRail}) {
    const BuiltClos one = build_clos(64, servers_of(8, 400, 1), layout);
    const BuiltClos two = build_clos(64, servers_of(8, 400, 2), layout + ", planes: 2");
    REQUIRE(two.routing.fabric.switches == 2 * one.routing.fabric.switches);
    REQUIRE(two.topology.link_count() == 2 * one.topology.link_count());
    for (std::size_t nic = 0; nic < all_nics(one).size(); ++nic) {
      const std::string leaf = leaves_of(one, all_nics(one)[nic])[0];
      const NodeId node = all_nics(two)[nic];
      REQUIRE(leaves_of(two, node) == std::vector{"plane0-" + leaf, "plane1-" + leaf});
      const LinkId port = two.topology.links_from(node)[0];
      REQUIRE(two.topology.link(port).spec.bandwidth == gigabits_per_second(192));
    }
    // No switch of one plane has a link to the other.
    for (std::uint32_t id = 0; id < two.topology.link_count(); ++id) {
      const Node& source = two.topology.node(two.topology.link(LinkId(id)).source);
      const Node& target = two.topology.node(two.topology.link(LinkId(id)).target);
      if (source.kind == NodeKind::Switch && target.kind == NodeKind::Switch) {
        REQUIRE(source.name.substr(0, 6) == target.name.substr(0, 6));
      }
    }
  }
}

TEST_CASE("with dual ToR the ports of a NIC go to different leaves of one fabric") {
  const BuiltClos plain = build_clos(16, servers_of(8, 400, 2), kClosClos + ", dual_tor: true");
  // Four servers below a pair of leaves.
  for (std::size_t server = 0; server < 16; ++server) {
    const std::size_t leaf = server / 4 * 2;
    for (const NodeId nic : plain.servers[server].nics) {
      REQUIRE(leaves_of(plain, nic) ==
              std::vector{"leaf" + std::to_string(leaf), "leaf" + std::to_string(leaf + 1)});
    }
  }
  // Rail-optimised: 32 servers below 8 rails of two leaves, as a segment of Alibaba's HPN has 16
  // (Qian et al., Alibaba HPN: a data center network for large language model training, 2024).
  const BuiltClos rails = build_clos(40, servers_of(8, 400, 2), kClosRail + ", dual_tor: true");
  for (std::size_t server = 0; server < 40; ++server) {
    for (std::size_t nic = 0; nic < 8; ++nic) {
      const std::size_t leaf = server / 32 * 16 + 2 * nic;
      REQUIRE(leaves_of(rails, rails.servers[server].nics[nic]) ==
              std::vector{"leaf" + std::to_string(leaf), "leaf" + std::to_string(leaf + 1)});
    }
  }
  // Four ports in two planes of two leaves each.
  const BuiltClos both =
      build_clos(16, servers_of(8, 400, 4), kClosClos + ", dual_tor: true, planes: 2");
  REQUIRE(leaves_of(both, both.servers[15].nics[7]) ==
          std::vector<std::string>{"plane0-leaf6", "plane0-leaf7", "plane1-leaf6", "plane1-leaf7"});
}

// The most of `targets` (by source, as numbers of endpoints) that share a link.
int max_on_a_link(UpDownRouter& router, const Topology& topology,
                  const std::vector<std::uint32_t>& targets) {
  const RoutingOptions options{.policy = RoutingPolicy::Static};
  const std::vector<NodeId>& nics = router.endpoints();
  std::vector<int> load(topology.link_count(), 0);
  for (std::uint32_t source = 0; source < nics.size(); ++source) {
    const NodeId target = nics[targets[source]];
    std::vector<LinkId> path;
    REQUIRE(router.append_route(nics[source], target,
                                Chooser(options, nics[source], target, 0, targets[source]), path));
    for (const LinkId link : path) {
      ++load[link.value()];
    }
  }
  return *std::max_element(load.begin(), load.end());
}

TEST_CASE("static routing shifts through three full tiers without a collision") {
  // Zahavi 2011 proves it for shifts of whole fat trees.
  const auto require_no_collision = [](const BuiltClos& clos, std::uint32_t step) {
    UpDownRouter router(clos.topology);
    const auto count = static_cast<std::uint32_t>(router.endpoints().size());
    for (std::uint32_t shift = 1; shift < count; shift += step) {
      INFO("shift by " << shift);
      std::vector<std::uint32_t> targets;
      for (std::uint32_t source = 0; source < count; ++source) {
        targets.push_back((source + shift) % count);
      }
      REQUIRE(max_on_a_link(router, clos.topology, targets) == 1);
    }
  };
  require_no_collision(build_clos(16, servers_of(1), fat_tree(4)), 1);
  require_no_collision(build_clos(54, servers_of(1), fat_tree(6)), 1);
  // Four pods of four leaves; eight cables from a leaf to a spine, sixteen from a spine to a core.
  require_no_collision(build_clos(64, servers_of(8), kClosClos + kClosCore + ", leaves_per_pod: 4"),
                       17);
}

TEST_CASE("both routers agree on all templates, and none can deadlock") {
  const std::vector<std::pair<std::string, int>> layouts = {
      {kClosClos, 1},
      {kClosRail, 1},
      {kClosClos + ", dual_tor: true", 2},
      {kClosRail + ", planes: 2", 2},
      {kClosClos + kClosCore + ", leaves_per_pod: 2, spine_oversubscription: 2", 1},
      {kClosRail + kClosCore + ", leaves_per_pod: 8, nodes_per_leaf: 3", 1},
      {kClosClos + kClosCore + ", dual_tor: true, planes: 2, leaves_per_pod: 2", 4},
      {fat_tree(16), 1}};
  for (const auto& [layout, ports] : layouts) {
    INFO(layout);
    const BuiltClos clos = build_clos(20, servers_of(8, 400, ports), layout);
    UpDownRouter router(clos.topology);
    GeneralRouter general(clos.topology);
    REQUIRE(router.endpoints() == general.endpoints());
    for (const RoutingPolicy policy : {RoutingPolicy::EcmpHash, RoutingPolicy::Static}) {
      const RoutingOptions options{.policy = policy, .seed = 3};
      const std::vector<NodeId>& nics = router.endpoints();
      for (std::uint32_t source = 0; source < nics.size(); source += 3) {
        for (std::uint32_t target = 0; target < nics.size(); ++target) {
          if (source == target) {
            continue;
          }
          const Chooser chooser(options, nics[source], nics[target], source, target);
          std::vector<LinkId> path;
          std::vector<LinkId> other;
          REQUIRE(router.append_route(nics[source], nics[target], chooser, path));
          REQUIRE(general.append_route(nics[source], nics[target], chooser, other));
          REQUIRE(path == other);
        }
      }
    }
    std::vector<bool> used(clos.topology.link_count(), false);
    std::vector<bool> expected(clos.topology.link_count(), false);
    router.mark_used(used);
    general.mark_used(expected);
    REQUIRE(used == expected);
    DependencyGraph graph(clos.topology.link_count(), 1);
    router.add_dependencies(graph);
    REQUIRE(graph.find_cycle().empty());
  }
}

}  // namespace
}  // namespace trainyard
