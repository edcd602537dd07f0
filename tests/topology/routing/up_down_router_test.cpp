// SPDX-License-Identifier: Apache-2.0
// On random fabrics of two and three tiers, whole and with cables and single directions cut, routes
// are compared with a search over (node, whether the way has turned down): they exist where it
// finds one, are as short, and never go up again. Where all shortest paths of the graph go up and
// down, the general router gives the same ones, link by link. The same search says which links are
// used and which wait for which.
#include "support/catch.h"

#include "topology/routing/up_down_router.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/random.h"
#include "support/fabrics.h"
#include "topology/graph/dependency_graph.h"
#include "topology/routing/general_router.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr std::uint32_t kRouterFar = std::numeric_limits<std::uint32_t>::max();
const LinkSpec kRouterLink = fabric_link(gigabits_per_second(100), 1_us);

struct Tiers {
  int pods = 1;
  int leaves = 2;  // Of a pod.
  int spines = 2;  // Of a pod.
  int cores = 0;   // Of a group: core group i joins spine i of every pod.
  int hosts = 1;   // Of a leaf.
  int host_ports = 1;
  int uplinks = 1;  // Parallel cables between a leaf and a spine.
  int core_links = 1;
};

Tiers random_tiers(RandomStream& random) {
  const auto draw = [&](int min, int max) {
    return min + static_cast<int>(random.below(static_cast<std::uint64_t>(max - min + 1)));
  };
  const bool three = random.below(3) > 0;
  return {.pods = three ? draw(2, 3) : 1,
          .leaves = draw(2, 4),
          .spines = draw(1, 4),
          .cores = three ? draw(1, 3) : 0,
          .hosts = draw(1, 3),
          .host_ports = draw(1, 2),
          .uplinks = draw(1, 2),
          .core_links = draw(1, 2)};
}

enum class Cut : std::uint8_t { None, Cables, Directions };

// What is left after each cable between switches, or each of its directions, is cut with
// probability 1/8.
class Builder {
 public:
  Builder(RandomStream& random, Cut cut) : random_(random), cut_(cut) {}

  TestFabric build(const Tiers& tiers) {
    for (int host = 0; host < tiers.pods * tiers.leaves * tiers.hosts; ++host) {
      add_host(builder_, hosts_);
    }
    const auto leaves = add("leaf", tiers.pods * tiers.leaves);
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      const std::size_t leaf = host / static_cast<std::size_t>(tiers.hosts);
      for (std::size_t port = 0; port < static_cast<std::size_t>(tiers.host_ports); ++port) {
        builder_.add_duplex_link(hosts_[host], leaves[(leaf + port) % leaves.size()], kRouterLink);
      }
    }
    const auto spines = add("spine", tiers.pods * tiers.spines);
    for (int leaf = 0; leaf < tiers.pods * tiers.leaves; ++leaf) {
      for (int spine = 0; spine < tiers.spines; ++spine) {
        join(leaves[static_cast<std::size_t>(leaf)],
             spines[static_cast<std::size_t>(leaf / tiers.leaves * tiers.spines + spine)],
             tiers.uplinks);
      }
    }
    const auto cores = add("core", tiers.spines * tiers.cores);
    for (int spine = 0; spine < tiers.pods * tiers.spines; ++spine) {
      for (int core = 0; core < tiers.cores; ++core) {
        join(spines[static_cast<std::size_t>(spine)],
             cores[static_cast<std::size_t>(spine % tiers.spines * tiers.cores + core)],
             tiers.core_links);
      }
    }
    return {.topology = std::move(builder_).build(), .hosts = std::move(hosts_)};
  }

 private:
  std::vector<NodeId> add(const std::string& name, int count) {
    std::vector<NodeId> nodes;
    for (int index = 0; index < count; ++index) {
      nodes.push_back(add_switch(builder_, name + std::to_string(index)));
    }
    return nodes;
  }

  void join(NodeId low, NodeId high, int cables) {
    for (int cable = 0; cable < cables; ++cable) {
      const bool whole = cut_ != Cut::Cables || random_.below(8) > 0;
      for (const auto& [from, to] : {std::pair(low, high), std::pair(high, low)}) {
        if (whole && (cut_ != Cut::Directions || random_.below(8) > 0)) {
          builder_.add_link(from, to, kRouterLink);
        }
      }
    }
  }

  RandomStream& random_;
  Cut cut_;
  TopologyBuilder builder_;
  std::vector<NodeId> hosts_;
};

// Shortest ways between hosts in steps of one link, and their number. Up and down are told by the
// distance of a switch from the hosts along cables.
class Search {
 public:
  Search(const Topology& topology, bool only_up_down)
      : topology_(topology),
        only_up_down_(only_up_down),
        levels_(topology.node_count(), kRouterFar) {
    for (std::uint32_t node = 0; node < topology.node_count(); ++node) {
      levels_[node] = topology.node(NodeId(node)).kind == NodeKind::Gpu ? 0 : kRouterFar;
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint32_t id = 0; id < topology.link_count(); ++id) {
        const Link& link = topology.link(LinkId(id));
        changed = relax(link.source, link.target) || relax(link.target, link.source) || changed;
      }
    }
  }

  [[nodiscard]] bool goes_up(LinkId id) const {
    const Link& link = topology_.link(id);
    return levels_[link.source.value()] < levels_[link.target.value()];
  }

  struct State {
    std::uint32_t distance = kRouterFar;
    std::uint64_t ways = 0;
  };
  // By 2 x node + (1 after a link down). Ways to a host end there.
  [[nodiscard]] std::vector<State> from(NodeId source) const {
    std::vector<State> states(std::size_t{2} * topology_.node_count());
    std::vector<std::size_t> queue = {std::size_t{2} * source.value()};
    states[queue[0]] = {0, 1};
    for (std::size_t next = 0; next < queue.size(); ++next) {
      const std::size_t at = queue[next];
      const NodeId node(static_cast<std::uint32_t>(at / 2));
      if (topology_.node(node).kind == NodeKind::Gpu && node != source) {
        continue;
      }
      for (const LinkId id : topology_.links_from(node)) {
        const auto target = step(id, at % 2 == 1);
        if (!target) {
          continue;
        }
        State& state = states[*target];
        if (state.distance == kRouterFar) {
          state.distance = states[at].distance + 1;
          queue.push_back(*target);
        }
        state.ways += state.distance == states[at].distance + 1 ? states[at].ways : 0;
      }
    }
    return states;
  }

  [[nodiscard]] State between(NodeId source, NodeId target) const {
    return at_host(from(source), target);
  }
  [[nodiscard]] static State at_host(const std::vector<State>& states, NodeId host) {
    const State& climbing = states[std::size_t{2} * host.value()];
    const State& descending = states[std::size_t{2} * host.value() + 1];
    return climbing.distance < descending.distance ? climbing : descending;
  }

  // Where a link leads a way that has turned down or not, if it may take it.
  [[nodiscard]] std::optional<std::size_t> step(LinkId id, bool descending) const {
    const Link& link = topology_.link(id);
    const std::uint32_t from = levels_[link.source.value()];
    const std::uint32_t to = levels_[link.target.value()];
    if (!only_up_down_) {
      return std::size_t{2} * link.target.value();
    }
    if (from == to || (from < to && descending)) {
      return std::nullopt;
    }
    return std::size_t{2} * link.target.value() + (to < from ? 1 : 0);
  }

 private:
  bool relax(NodeId a, NodeId b) {
    const std::uint32_t known = levels_[a.value()];
    if (known == kRouterFar || known + 1 >= levels_[b.value()]) {
      return false;
    }
    levels_[b.value()] = known + 1;
    return true;
  }

  const Topology& topology_;
  bool only_up_down_;
  std::vector<std::uint32_t> levels_;
};

// All that shortest ways between hosts do, found pair by pair.
struct Use {
  std::vector<bool> links;
  std::vector<std::pair<LinkId, LinkId>> turns;  // Between switches.
};

Use exhaustive_use(const TestFabric& fabric, const Search& search) {
  const Topology& topology = fabric.topology;
  Use use{std::vector<bool>(topology.link_count(), false), {}};
  for (const NodeId source : fabric.hosts) {
    const auto states = search.from(source);
    for (const NodeId target : fabric.hosts) {
      const std::uint32_t length = Search::at_host(states, target).distance;
      if (source == target || length == kRouterFar) {
        continue;
      }
      // Backwards from the target: which states lie on a shortest way, and by which links.
      std::vector<std::uint32_t> rest(states.size(), kRouterFar);
      rest[std::size_t{2} * target.value() + 1] = 0;
      std::vector<std::vector<LinkId>> out(states.size());
      for (std::uint32_t left = 1; left <= length; ++left) {
        for (std::size_t at = 0; at < states.size(); ++at) {
          const NodeId node(static_cast<std::uint32_t>(at / 2));
          if (states[at].distance != length - left) {
            continue;
          }
          for (const LinkId id : topology.links_from(node)) {
            const auto to = search.step(id, at % 2 == 1);
            if (to && rest[*to] == left - 1 && states[*to].distance == length - left + 1) {
              rest[at] = left;
              out[at].push_back(id);
            }
          }
        }
      }
      for (std::size_t at = 0; at < states.size(); ++at) {
        for (const LinkId id : out[at]) {
          use.links[id.value()] = true;
          const std::size_t to = *search.step(id, at % 2 == 1);
          for (const LinkId next : out[to]) {
            use.turns.emplace_back(id, next);
          }
        }
      }
    }
  }
  std::sort(use.turns.begin(), use.turns.end());
  use.turns.erase(std::unique(use.turns.begin(), use.turns.end()), use.turns.end());
  return use;
}

Chooser chooser(const RoutingOptions& options, const FabricRouter& router, NodeId source,
                NodeId target, std::uint32_t label) {
  const auto& all = router.endpoints();
  const auto index = std::find(all.begin(), all.end(), target) - all.begin();
  return {options, source, target, label, static_cast<std::uint32_t>(index)};
}

void require_up_down(const TestFabric& fabric, const Search& search, NodeId source, NodeId target,
                     const std::vector<LinkId>& path) {
  NodeId at = source;
  bool descending = false;
  for (const LinkId id : path) {
    REQUIRE(fabric.topology.link(id).source == at);
    REQUIRE(search.step(id, descending));
    descending = !search.goes_up(id);
    at = fabric.topology.link(id).target;
  }
  REQUIRE(at == target);
}

// Returns how many pairs both routers had to agree on.
int compare_routes(const TestFabric& fabric, const RoutingOptions& options) {
  UpDownRouter router(fabric.topology);
  GeneralRouter general(fabric.topology);
  REQUIRE(router.endpoints() == general.endpoints());
  const Search up_down(fabric.topology, true);
  const Search any(fabric.topology, false);
  int agreed = 0;
  for (const NodeId source : fabric.hosts) {
    const auto up_down_states = up_down.from(source);
    const auto any_states = any.from(source);
    for (const NodeId target : fabric.hosts) {
      if (source == target) {
        continue;
      }
      const auto expected = Search::at_host(up_down_states, target);
      const auto shortest = Search::at_host(any_states, target);
      for (std::uint32_t label = 0; label < 3; ++label) {
        const Chooser choice = chooser(options, router, source, target, label);
        std::vector<LinkId> path;
        REQUIRE(router.append_route(source, target, choice, path) == (expected.ways > 0));
        if (expected.ways == 0) {
          REQUIRE(path.empty());
          continue;
        }
        REQUIRE(path.size() == expected.distance);
        require_up_down(fabric, up_down, source, target, path);
        if (shortest.distance == expected.distance && shortest.ways == expected.ways) {
          std::vector<LinkId> other;
          REQUIRE(general.append_route(source, target, choice, other));
          REQUIRE(path == other);
          ++agreed;
        }
      }
    }
  }
  return agreed;
}

TEST_CASE("routes of random fabrics in tiers go up and down and are those of the general router") {
  int agreed = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "tiers");
    const Cut cut = std::array{Cut::None, Cut::Cables, Cut::Directions}[seed % 3];
    const TestFabric fabric = Builder(random, cut).build(random_tiers(random));
    const auto policy = random.below(2) == 0 ? RoutingPolicy::EcmpHash : RoutingPolicy::Static;
    agreed += compare_routes(fabric, {.policy = policy, .seed = seed});
  }
  REQUIRE(agreed > 10'000);  // The comparison is not empty.
}

TEST_CASE("links in use and buffers that wait are those of an exhaustive search") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "tiers in use");
    const Cut cut = std::array{Cut::None, Cut::Cables, Cut::Directions}[seed % 3];
    const TestFabric fabric = Builder(random, cut).build(random_tiers(random));
    const Topology& topology = fabric.topology;
    const Search search(topology, true);
    const Use use = exhaustive_use(fabric, search);
    UpDownRouter router(topology);
    std::vector<bool> used(topology.link_count(), false);
    router.mark_used(used);
    const auto is_core = [&](LinkId id) {
      return topology.node(topology.link(id).source).kind == NodeKind::Switch &&
             topology.node(topology.link(id).target).kind == NodeKind::Switch;
    };
    std::uint32_t longest = 0;
    for (const NodeId source : fabric.hosts) {
      for (const NodeId target : fabric.hosts) {
        const auto state = search.between(source, target);
        longest = std::max(longest, state.ways > 0 ? state.distance : 0);
      }
    }
    // Both ends of a path between hosts are links of hosts. Two leaves of one host may be farther
    // from each other than any two hosts are.
    REQUIRE(router.diameter());
    REQUIRE(*router.diameter() >= static_cast<int>(longest) - 2);
    for (std::uint32_t id = 0; id < topology.link_count(); ++id) {
      // A leaf's way to another counts as used even if the hosts of both have shorter ones.
      REQUIRE((used[id] || !use.links[id]));
    }
    DependencyGraph graph(topology.link_count(), 1);
    router.add_dependencies(graph);
    REQUIRE(graph.find_cycle().empty());
    for (const auto& [held, awaited] : use.turns) {
      if (is_core(held) && is_core(awaited)) {
        DependencyGraph closed(topology.link_count(), 1);
        router.add_dependencies(closed);
        closed.add(closed.buffer(awaited, 0), closed.buffer(held, 0));
        REQUIRE_FALSE(closed.find_cycle().empty());
      }
    }
  }
}

TEST_CASE("with one port a host, the links in use and the diameter are exact") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "tiers exactly");
    Tiers tiers = random_tiers(random);
    tiers.host_ports = 1;
    tiers.hosts = 2;  // So that a leaf is a target of itself, as the router counts it.
    const Cut cut = std::array{Cut::None, Cut::Cables, Cut::Directions}[seed % 3];
    const TestFabric fabric = Builder(random, cut).build(tiers);
    const Search search(fabric.topology, true);
    const Use use = exhaustive_use(fabric, search);
    UpDownRouter router(fabric.topology);
    std::vector<bool> used(fabric.topology.link_count(), false);
    router.mark_used(used);
    REQUIRE(used == use.links);
    std::uint32_t longest = 0;
    for (const NodeId source : fabric.hosts) {
      for (const NodeId target : fabric.hosts) {
        const auto state = search.between(source, target);
        longest = std::max(longest, state.ways > 0 ? state.distance : 0);
      }
    }
    REQUIRE(router.diameter() == static_cast<int>(longest) - 2);
  }
}

TEST_CASE("a way that goes down and up again is not taken") {
  // The two leaves share no spine; the third has cables to both spines.
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  std::vector<NodeId> leaves;
  for (int leaf = 0; leaf < 3; ++leaf) {
    leaves.push_back(add_switch(builder, "leaf" + std::to_string(leaf)));
    builder.add_duplex_link(add_host(builder, hosts), leaves.back(), kRouterLink);
  }
  const NodeId left = add_switch(builder, "left");
  const NodeId right = add_switch(builder, "right");
  builder.add_duplex_link(leaves[0], left, kRouterLink);
  builder.add_duplex_link(leaves[1], right, kRouterLink);
  builder.add_duplex_link(leaves[2], left, kRouterLink);
  builder.add_duplex_link(leaves[2], right, kRouterLink);
  const Topology topology = std::move(builder).build();
  UpDownRouter router(topology);
  const RoutingOptions options;
  std::vector<LinkId> path;
  REQUIRE_FALSE(router.append_route(hosts[0], hosts[1],
                                    chooser(options, router, hosts[0], hosts[1], 0), path));
  REQUIRE(router.append_route(hosts[0], hosts[2], chooser(options, router, hosts[0], hosts[2], 0),
                              path));
  GeneralRouter general(topology);
  path.clear();
  REQUIRE(general.append_route(hosts[0], hosts[1], chooser(options, router, hosts[0], hosts[1], 0),
                               path));
  REQUIRE(path.size() == 6);
}

TEST_CASE("switches are ends of routes too") {
  RandomStream random(1, "unused");
  const TestFabric fabric =
      Builder(random, Cut::None).build({.pods = 2, .leaves = 2, .spines = 2, .cores = 1});
  const Topology& topology = fabric.topology;
  UpDownRouter router(topology);
  const RoutingOptions options;
  const auto length = [&](NodeId source, NodeId target) {
    std::vector<LinkId> path;
    REQUIRE(router.append_route(source, target, Chooser(options, source, target, 0, 0), path));
    return path.size();
  };
  const NodeId core = *topology.find("core0");
  REQUIRE(length(fabric.hosts[0], core) == 3);
  REQUIRE(length(core, fabric.hosts[3]) == 3);
  REQUIRE(length(core, core) == 0);
  REQUIRE(length(*topology.find("leaf0"), *topology.find("leaf1")) == 2);
  REQUIRE(length(*topology.find("leaf0"), *topology.find("spine0")) == 1);
  // Spine 0 of the other pod: up to its core group, down once.
  REQUIRE(length(*topology.find("leaf0"), *topology.find("spine2")) == 3);
  REQUIRE(length(*topology.find("spine0"), *topology.find("spine2")) == 2);
}

TEST_CASE("what is kept of reach grows with the switches and not with their pairs") {
  double max = 0.0;
  double min = std::numeric_limits<double>::max();
  RandomStream random(1, "unused");
  for (const int pods : {2, 20, 200}) {
    const TestFabric fabric =
        Builder(random, Cut::None)
            .build({.pods = pods, .leaves = 16, .spines = 8, .cores = 8, .hosts = 32});
    const UpDownReach reach(fabric.topology);
    std::set<const Interval*> sets;  // Equal ones are kept once.
    std::size_t intervals = 0;
    for (std::uint32_t index = 0; index < reach.count(); ++index) {
      for (std::uint32_t ups = 0; ups < reach.levels(); ++ups) {
        for (std::uint32_t level = 0; level < reach.levels(); ++level) {
          const auto set = reach.set(index, ups, level);
          intervals += !set.empty() && sets.insert(set.data()).second ? set.size() : 0;
        }
      }
    }
    const double each = static_cast<double>(intervals) / static_cast<double>(reach.count());
    max = std::max(max, each);
    min = std::min(min, each);
  }
  REQUIRE(max < 2 * min);
}

}  // namespace
}  // namespace trainyard
