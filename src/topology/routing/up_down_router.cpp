// SPDX-License-Identifier: Apache-2.0
#include "topology/routing/up_down_router.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/check.h"
#include "topology/graph/dependency_graph.h"

namespace trainyard {

UpDownRouter::UpDownRouter(const Topology& topology, const RoutingOptions& /*options*/)
    : topology_(topology), reach_(topology) {
  find_accesses();
  order_endpoints();
  count_level_links();
}

// The links between switches and endpoints; a switch of the fabric is its own access.
void UpDownRouter::find_accesses() {
  std::vector<std::pair<std::uint32_t, Access>> ups;
  std::vector<std::pair<std::uint32_t, Access>> downs;
  for (std::uint32_t id = 0; id < topology_.link_count(); ++id) {
    const Link& link = topology_.link(LinkId(id));
    const bool from_switch = topology_.node(link.source).kind == NodeKind::Switch;
    const bool to_switch = topology_.node(link.target).kind == NodeKind::Switch;
    if (link.spec.kind != LinkKind::Network || from_switch == to_switch) {
      continue;
    }
    if (to_switch) {
      ups.push_back({link.source.value(), {*reach_.index(link.target), LinkId(id)}});
    } else {
      downs.push_back({link.target.value(), {*reach_.index(link.source), LinkId(id)}});
    }
  }
  for (std::uint32_t index = 0; index < reach_.count(); ++index) {
    ups.push_back({reach_.node(index).value(), {index, std::nullopt}});
    downs.push_back(ups.back());
  }
  ups_ = Lists<Access>(topology_.node_count(), ups);
  downs_ = Lists<Access>(topology_.node_count(), downs);
}

// Sorts by the first switch that an endpoint hangs off, then by node. Switches count in the order
// in which links name them, as in topology/routing/layer.h.
void UpDownRouter::order_endpoints() {
  constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> named(topology_.node_count(), kNever);
  std::uint32_t names = 0;
  for (const Link& link : topology_.links()) {
    for (const NodeId node : {link.source, link.target}) {
      if (link.spec.kind == LinkKind::Network && topology_.node(node).kind == NodeKind::Switch &&
          named[node.value()] == kNever) {
        named[node.value()] = names++;
      }
    }
  }
  std::vector<std::pair<std::uint32_t, NodeId>> order;
  for (std::uint32_t node = 0; node < topology_.node_count(); ++node) {
    const auto downs = downs_.of(node);
    if (topology_.node(NodeId(node)).kind != NodeKind::Switch &&
        !(downs.empty() && ups_.of(node).empty())) {
      order.emplace_back(downs.empty() ? kNever : named[reach_.node(downs.front().index).value()],
                         node);
    }
  }
  std::sort(order.begin(), order.end());
  endpoints_.reserve(order.size());
  for (const auto& [leaf, node] : order) {
    endpoints_.push_back(node);
  }
}

void UpDownRouter::count_level_links() {
  std::vector<LevelCount> counts(reach_.levels());
  std::vector<std::uint32_t> targets;
  for (std::uint32_t index = 0; index < reach_.count(); ++index) {
    targets.clear();
    for (const UpDownReach::Hop& hop : reach_.up(index)) {
      targets.push_back(hop.other);
    }
    counts[reach_.level(index)].add(targets);
  }
  for (const LevelCount& count : counts) {
    level_links_.push_back(count.links());
  }
}

bool UpDownRouter::append_route(NodeId source, NodeId target, const Chooser& chooser,
                                std::vector<LinkId>& path) {
  Access up{};
  Access down{};
  if (!choose_ends(source, target, chooser, up, down)) {
    return false;
  }
  if (up.link) {
    path.push_back(*up.link);
  }
  append_core(up.index, down.index, chooser, path);
  if (down.link) {
    path.push_back(*down.link);
  }
  return true;
}

// A path that goes up u times has 2 u links, and one more for each level that its first switch is
// above its last.
bool UpDownRouter::choose_ends(NodeId source, NodeId target, const Chooser& chooser, Access& up,
                               Access& down) {
  const auto ups = ups_.of(source.value());
  const auto downs = downs_.of(target.value());
  if (const auto& cables = chooser.cables(); cables && !ups.empty() && !downs.empty()) {
    up = ups[cables->source % ups.size()];
    down = downs[cables->target % downs.size()];
    if (reach_.ups(up.index, down.index)) {
      return true;
    }
  }
  std::uint32_t min = std::numeric_limits<std::uint32_t>::max();
  good_.clear();  // Numbers of pairs.
  std::uint32_t pair = 0;
  for (const Access& first : ups) {
    for (const Access& last : downs) {
      if (const auto times = reach_.ups(first.index, last.index)) {
        const std::uint32_t length =
            2 * *times + reach_.level(first.index) - reach_.level(last.index);
        if (length < min) {
          min = length;
          good_.clear();
        }
        if (length == min) {
          good_.push_back(pair);
        }
      }
      ++pair;
    }
  }
  if (good_.empty()) {
    return false;
  }
  pair = good_[chooser.pick_ports(source, static_cast<std::uint32_t>(good_.size()))];
  up = ups[pair / downs.size()];
  down = downs[pair % downs.size()];
  return true;
}

void UpDownRouter::append_core(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                               std::vector<LinkId>& path) {
  std::uint32_t at = from;
  const auto take = [&](const UpDownReach::Hop& hop) {
    path.push_back(hop.link);
    at = hop.other;
  };
  const auto below = [&](std::uint32_t level) { return std::span(level_links_).first(level); };
  for (std::uint32_t ups = *reach_.ups(from, to); ups > 0; --ups) {
    const auto hops = reach_.up(at);
    if (reach_.same_above(at, ups, reach_.level(to))) {
      take(choose(hops, nullptr, reach_.node(at), chooser, below(reach_.level(at))));
    } else {
      find_good(hops, ups - 1, to);
      take(choose(hops, &good_, reach_.node(at), chooser, below(reach_.level(at))));
    }
  }
  while (at != to) {
    const auto hops = reach_.level(to) == 0 ? reach_.down_to(at, to) : reach_.down(at);
    find_good(hops, 0, to);
    take(choose(hops, &good_, reach_.node(at), chooser, below(reach_.level(at) - 1)));
  }
}

const UpDownReach::Hop& UpDownRouter::choose(std::span<const UpDownReach::Hop> hops,
                                             const std::vector<std::uint32_t>* good, NodeId at,
                                             const Chooser& chooser,
                                             std::span<const LevelLinks> below) {
  const auto count = static_cast<std::uint32_t>(good == nullptr ? hops.size() : good->size());
  const auto hop = [&](std::uint32_t index) -> const UpDownReach::Hop& {
    return hops[good == nullptr ? index : (*good)[index]];
  };
  if (!chooser.policy().switches_choose()) {
    return hop(chooser.pick_above(at, count, below));
  }
  good_links_.clear();
  for (std::uint32_t index = 0; index < count; ++index) {
    good_links_.push_back(hop(index).link);
  }
  const LinkId link = chooser.pick_above(at, good_links_, below);
  return *std::ranges::find(hops, link, &UpDownReach::Hop::link);
}

void UpDownRouter::find_good(std::span<const UpDownReach::Hop> hops, std::uint32_t ups,
                             std::uint32_t target) {
  const std::uint32_t level = reach_.level(target);
  good_.clear();
  for (std::uint32_t position = 0; position < hops.size(); ++position) {
    if (contains(reach_.set(hops[position].other, ups, level), target)) {
      good_.push_back(position);
    }
  }
  CHECK(!good_.empty(), "a switch promises a way that it does not have");
}

IntervalSet UpDownRouter::leaves(const Lists<Access>& accesses) const {
  IntervalSet leaves;
  for (const NodeId node : endpoints_) {
    for (const Access& access : accesses.of(node.value())) {
      leaves.push_back({access.index, access.index + 1});
    }
  }
  return unite(std::move(leaves));
}

UpDownRouter::Passing UpDownRouter::start() const {
  Passing passing(reach_.count(), std::vector<IntervalSet>(reach_.levels()));
  const IntervalSet targets = leaves(downs_);
  for (const Interval& sources : leaves(ups_)) {
    for (std::uint32_t leaf = sources.first; leaf < sources.end; ++leaf) {
      IntervalSet rest = targets;
      for (std::uint32_t ups = 0; ups < reach_.levels(); ++ups) {
        passing[leaf][ups] = intersect(rest, reach_.set(leaf, ups, 0));
        rest = subtract(rest, passing[leaf][ups]);
      }
    }
  }
  return passing;
}

// Follows all routes at once, from the lowest switches up and from the highest down.
void UpDownRouter::mark_core(std::vector<bool>& used) const {
  Passing passing = start();
  const auto pass = [&](std::uint32_t from, std::uint32_t ups, const UpDownReach::Hop& hop,
                        std::uint32_t ups_left) {
    const IntervalSet targets = intersect(passing[from][ups], reach_.set(hop.other, ups_left, 0));
    if (!targets.empty()) {
      used[hop.link.value()] = true;
      IntervalSet& known = passing[hop.other][ups_left];
      known.insert(known.end(), targets.begin(), targets.end());
      known = unite(std::move(known));
    }
  };
  for (std::uint32_t index = 0; index < reach_.count(); ++index) {
    for (std::uint32_t ups = 1; ups < reach_.levels(); ++ups) {
      for (const UpDownReach::Hop& hop : reach_.up(index)) {
        pass(index, ups, hop, ups - 1);
      }
    }
  }
  for (std::uint32_t index = reach_.count(); index-- > 0;) {
    for (const UpDownReach::Hop& hop : reach_.down(index)) {
      pass(index, 0, hop, 0);
    }
  }
}

std::optional<int> UpDownRouter::diameter() const {
  std::uint32_t max = 0;
  for (const std::vector<IntervalSet>& targets : start()) {
    for (std::uint32_t ups = 0; ups < targets.size(); ++ups) {
      max = targets[ups].empty() ? max : std::max(max, ups);
    }
  }
  return 2 * static_cast<int>(max);
}

void UpDownRouter::mark_used(std::vector<bool>& used) {
  for (const NodeId node : endpoints_) {
    for (const Lists<Access>* accesses : {&ups_, &downs_}) {
      for (const Access& access : accesses->of(node.value())) {
        used[access.link->value()] = true;
      }
    }
  }
  mark_core(used);
}

// Two hubs a switch: what arrives from below waits for links up or, by the second hub, down; what
// arrives from above waits for links down.
void UpDownRouter::add_dependencies(DependencyGraph& graph) {
  std::vector<bool> used(topology_.link_count(), false);
  mark_core(used);
  const std::uint32_t from_below = graph.add_hubs(reach_.count());
  const std::uint32_t from_above = graph.add_hubs(reach_.count());
  for (std::uint32_t index = 0; index < reach_.count(); ++index) {
    graph.add(from_below + index, from_above + index);
  }
  for (std::uint32_t index = 0; index < reach_.count(); ++index) {
    for (const UpDownReach::Hop& hop : reach_.up(index)) {
      if (used[hop.link.value()]) {
        graph.add(from_below + index, graph.buffer(hop.link, 0));
        graph.add(graph.buffer(hop.link, 0), from_below + hop.other);
      }
    }
    for (const UpDownReach::Hop& hop : reach_.down(index)) {
      if (used[hop.link.value()]) {
        graph.add(from_above + index, graph.buffer(hop.link, 0));
        graph.add(graph.buffer(hop.link, 0), from_above + hop.other);
      }
    }
  }
}

}  // namespace trainyard
