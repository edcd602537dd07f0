// SPDX-License-Identifier: Apache-2.0
// Checks what is between servers: switches, rails, tiers, routes.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "topology/graph/dependency_graph.h"
#include "topology/lint/lint.h"
#include "topology/lint/metrics.h"
#include "topology/routing/fabric_router.h"

namespace trainyard {
namespace {

// Limit for a general router, which looks at each edge for each leaf: about two seconds.
constexpr std::uint64_t kMaxTurns = 200'000'000;
constexpr std::size_t kMaxNamed = 12;

void check_ports(const LintContext& context) {
  const Topology& topology = context.cluster.topology;
  // NICs by part and ports used.
  std::map<std::pair<std::uint16_t, int>, std::pair<NodeId, int>> found;
  for (std::uint32_t index = 0; index < topology.node_count(); ++index) {
    const NodeId id(index);
    const Node& node = topology.node(id);
    const bool is_domain = node.kind == NodeKind::NvSwitch && !node.server;
    if (node.kind != NodeKind::Switch && !is_domain) {
      continue;
    }
    int used = 0;
    for (const LinkId link : topology.links_from(id)) {
      used += topology.link(link).spec.lanes;
    }
    if (node.ports > 0 && used > node.ports) {
      ++found.try_emplace({node.part, used}, id, 0).first->second.second;
    }
  }
  for (const auto& [key, place] : found) {
    const auto& [first, count] = place;
    const Node& node = topology.node(first);
    context.add(Severity::Error, "ports",
                fmt::format("{}{} uses {} ports, and {} has {}", node.name,
                            count > 1 ? fmt::format(" and {} more", count - 1) : "", key.second,
                            topology.parts()[node.part], node.ports));
  }
}

// The NICs of one place in their servers, and the switches above them.
struct Rail {
  std::int64_t nics = 0;
  double injection = 0.0;  // Bits per second of all of them.
  double uplinks = 0.0;    // Their share of the uplinks of their leaves.
  std::set<std::uint32_t> leaves;
  std::uint32_t ports = 0;  // Leaves of one NIC, of the NIC with most.
};

std::vector<Rail> find_rails(const LintContext& context) {
  const Topology& topology = context.cluster.topology;
  const SwitchGraph& graph = context.graph;
  std::vector<double> down(graph.size(), 0.0);
  std::vector<double> up(graph.size(), 0.0);
  std::vector<std::vector<SwitchPort>> ports_of(topology.server_count());
  for (const SwitchPort& port : graph.ports()) {
    down[port.at] += static_cast<double>(port.bits_per_second);
    const Node& node = topology.node(port.endpoint);
    if (node.kind == NodeKind::Nic && node.server) {
      ports_of[node.server->value()].push_back(port);
    }
  }
  for (const SwitchEdge& edge : graph.edges()) {
    up[edge.source] += static_cast<double>(edge.bits_per_second);
  }
  std::vector<Rail> rails;
  for (std::vector<SwitchPort>& ports : ports_of) {
    std::ranges::stable_sort(ports, {}, &SwitchPort::endpoint);
    std::size_t rail = 0;
    std::uint32_t ports_of_nic = 0;
    for (std::size_t index = 0; index < ports.size(); ++index) {
      const SwitchPort& port = ports[index];
      const bool is_same = index > 0 && ports[index - 1].endpoint == port.endpoint;
      rail += index > 0 && !is_same ? 1 : 0;
      ports_of_nic = is_same ? ports_of_nic + 1 : 1;
      rails.resize(std::max(rails.size(), rail + 1));
      Rail& own = rails[rail];
      const auto rate = static_cast<double>(port.bits_per_second);
      own.nics += is_same ? 0 : 1;
      own.injection += rate;
      own.uplinks += up[port.at] * rate / down[port.at];
      own.leaves.insert(port.at);
      own.ports = std::max(own.ports, ports_of_nic);
    }
  }
  return rails;
}

// Compares each rail with the first, by NIC where rails have different numbers of NICs.
void check_rails(const LintContext& context) {
  const std::vector<Rail> rails = find_rails(context);
  const auto differs = [](double a, double b) {
    return std::abs(a - b) > 1e-6 * std::max(std::abs(a), std::abs(b));
  };
  for (std::size_t index = 1; index < rails.size(); ++index) {
    const Rail& rail = rails[index];
    const Rail& first = rails[0];
    const double own = static_cast<double>(rail.nics);
    const double other = static_cast<double>(first.nics);
    const bool leaves_differ = rail.nics == first.nics && rail.leaves.size() != first.leaves.size();
    if (!differs(rail.injection / own, first.injection / other) &&
        !differs(rail.uplinks / own, first.uplinks / other) && !leaves_differ &&
        rail.ports == first.ports) {
      continue;
    }
    const auto text = [](std::size_t number, const Rail& each) {
      const double nics = static_cast<double>(each.nics) * 8e9;
      return fmt::format("NIC {} of servers: {} leaves, {:.4g} GB/s each, {:.4g} GB/s of uplinks",
                         number, each.leaves.size(), each.injection / nics, each.uplinks / nics);
    };
    context.add(Severity::Warning, "unequal-rails",
                fmt::format("{}; {}", text(0, first), text(index, rail)));
    return;
  }
}

void check_tiers(const LintContext& context) {
  const std::vector<TierLoad> tiers = tier_loads(context.graph);
  for (std::size_t tier = 0; tier < tiers.size(); ++tier) {
    const TierLoad& load = tiers[tier];
    if (load.max_oversubscription > 1.0 + 1e-9) {
      context.add(Severity::Note, "oversubscription",
                  fmt::format("tier {}: {} has {} down and {} up, {:.3g}:1", tier,
                              context.name(load.worst), rate_text(load.down_bits_per_second),
                              rate_text(load.up_bits_per_second), load.max_oversubscription));
    }
  }
}

// Switches in the order of the cycle.
std::string cycle_text(const LintContext& context, const std::vector<LinkId>& cycle) {
  const Topology& topology = context.cluster.topology;
  std::string text;
  for (std::size_t index = 0; index < std::min(cycle.size(), kMaxNamed); ++index) {
    text += context.name(topology.link(cycle[index]).source) + " -> ";
  }
  if (cycle.size() > kMaxNamed) {
    return text + fmt::format("... ({} links)", cycle.size());
  }
  return text + context.name(topology.link(cycle.front()).source);
}

// Returns whether routes between all leaves would take a general router too long and too much
// memory.
bool is_too_large(const LintContext& context) {
  return context.routing.fabric().looks_at_all_pairs() &&
         context.graph.leaves().size() * context.graph.edges().size() > kMaxTurns;
}

void check_routes(const LintContext& context) {
  const Topology& topology = context.cluster.topology;
  DependencyGraph dependencies(topology.link_count(),
                               context.cluster.routing.fabric.virtual_channels);
  context.routing.fabric().add_dependencies(dependencies);
  const std::vector<LinkId> cycle = dependencies.find_cycle();
  if (!cycle.empty()) {
    context.add(Severity::Warning, "deadlock",
                fmt::format("buffers wait for one another in a cycle, {}: with PFC or credits the "
                            "fabric can deadlock",
                            cycle_text(context, cycle)));
  }
  std::vector<bool> used(topology.link_count(), false);
  context.routing.fabric().mark_used(used);
  std::vector<LinkId> unused;
  std::uint32_t all = 0;
  for (std::uint32_t index = 0; index < topology.link_count(); ++index) {
    if (topology.link(LinkId(index)).spec.kind == LinkKind::Network) {
      ++all;
      if (!used[index]) {
        unused.emplace_back(index);
      }
    }
  }
  if (!unused.empty()) {
    const Link& link = topology.link(unused.front());
    context.add(
        Severity::Note, "unused-links",
        fmt::format("{} of {} network links are on no route, {} -> {} the first", unused.size(),
                    all, context.name(link.source), context.name(link.target)));
  }
}

// Each GPU sends to its like in the next server, as in a ring over servers: the link with most
// flows for its rate.
void check_collisions(const LintContext& context) {
  const Cluster& cluster = context.cluster;
  const Topology& topology = cluster.topology;
  std::vector<std::vector<NodeId>> gpus(topology.server_count());
  for (const NodeId gpu : cluster.gpus) {
    if (const auto server = topology.node(gpu).server) {
      gpus[server->value()].push_back(gpu);
    }
  }
  std::erase_if(gpus, [](const auto& own) { return own.empty(); });
  if (gpus.size() < 2) {
    return;
  }
  std::vector<double> load(topology.link_count(), 0.0);  // Bits per second that flows could send.
  std::vector<std::uint32_t> flows(topology.link_count(), 0);
  std::vector<LinkId> path;
  std::uint32_t all = 0;
  Routing routing(topology, cluster.routing);  // Adaptive remembers the routes that it gave.
  for (std::size_t server = 0; server < gpus.size(); ++server) {
    const std::vector<NodeId>& next = gpus[(server + 1) % gpus.size()];
    for (std::size_t index = 0; index < gpus[server].size(); ++index) {
      if (!routing.route(gpus[server][index], next[index % next.size()], 0, path)) {
        continue;
      }
      // The rate that the flow would get alone.
      std::int64_t rate = kMaxBandwidth.bits_per_second();
      for (const LinkId id : path) {
        const LinkSpec& link = topology.link(id).spec;
        if (link.kind == LinkKind::Network) {
          rate = std::min(rate, link.bandwidth.bits_per_second());
        }
      }
      for (const LinkId id : path) {
        load[id.value()] += static_cast<double>(rate);
        ++flows[id.value()];
      }
      ++all;
    }
  }
  std::uint32_t worst = 0;
  double max = 0.0;
  for (std::uint32_t index = 0; index < topology.link_count(); ++index) {
    const Link& link = topology.link(LinkId(index));
    const bool is_trunk = topology.node(link.source).kind == NodeKind::Switch &&
                          topology.node(link.target).kind == NodeKind::Switch;
    const double share = load[index] / static_cast<double>(link.spec.bandwidth.bits_per_second());
    if (is_trunk && share > max) {
      max = share;
      worst = index;
    }
  }
  if (max <= 1.0 + 1e-9) {
    return;
  }
  const Link& link = topology.link(LinkId(worst));
  const PolicyTraits& policy = traits(cluster.routing.policy);
  context.add(
      Severity::Note, "collisions",
      fmt::format("{}: {} of {} flows share {} -> {}, {:.3g} times its rate (each GPU to its like "
                  "in the next server)",
                  policy.choice == LinkChoice::Hash
                      ? fmt::format("{}, seed {}", policy.name, cluster.routing.seed)
                      : std::string(policy.name),
                  flows[worst], all, context.name(link.source), context.name(link.target), max));
}

}  // namespace

void lint_fabric(const LintContext& context) {
  check_ports(context);
  check_rails(context);
  check_tiers(context);
  if (context.graph.size() == 0) {
    return;
  }
  if (is_too_large(context)) {
    context.add(Severity::Note, "not-checked",
                fmt::format("deadlock, unused links and collisions of the fabric: {} pairs of "
                            "switches are too many for routes without a structure",
                            context.graph.edges().size()));
    return;
  }
  check_routes(context);
  check_collisions(context);
}

}  // namespace trainyard
