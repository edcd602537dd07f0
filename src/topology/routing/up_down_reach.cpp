// SPDX-License-Identifier: Apache-2.0
#include "topology/routing/up_down_reach.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace trainyard {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

}  // namespace

UpDownReach::UpDownReach(const Topology& topology) {
  find_levels(topology);
  collect_hops(topology);
  find_sets();
  find_order();
}

std::optional<std::uint32_t> UpDownReach::index(NodeId node) const {
  const std::uint32_t index = index_of_node_[node.value()];
  return index == kNone ? std::nullopt : std::optional(index);
}

// Breadth first from the switches with endpoints, along cables whether or not both of their
// directions are there: a half broken cable changes no level.
void UpDownReach::find_levels(const Topology& topology) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> cables;
  std::vector<std::uint32_t> levels(topology.node_count(), kNone);
  std::vector<std::uint32_t> queue;
  for (std::uint32_t id = 0; id < topology.link_count(); ++id) {
    const Link& link = topology.link(LinkId(id));
    const bool from_switch = topology.node(link.source).kind == NodeKind::Switch;
    const bool to_switch = topology.node(link.target).kind == NodeKind::Switch;
    if (link.spec.kind != LinkKind::Network) {
      continue;
    }
    if (from_switch && to_switch) {
      cables.emplace_back(link.source.value(), link.target.value());
      cables.emplace_back(link.target.value(), link.source.value());
    } else if (from_switch || to_switch) {
      const std::uint32_t leaf = (from_switch ? link.source : link.target).value();
      if (levels[leaf] == kNone) {
        levels[leaf] = 0;
        queue.push_back(leaf);
      }
    }
  }
  const Lists<std::uint32_t> neighbours(topology.node_count(), cables);
  for (std::size_t next = 0; next < queue.size(); ++next) {
    for (const std::uint32_t other : neighbours.of(queue[next])) {
      if (levels[other] == kNone) {
        levels[other] = levels[queue[next]] + 1;
        queue.push_back(other);
      }
    }
  }
  levels_ = queue.empty() ? 0 : levels[queue.back()] + 1;
  number(levels);
}

void UpDownReach::number(const std::vector<std::uint32_t>& levels) {
  std::vector<std::pair<std::uint32_t, NodeId>> order;
  for (std::uint32_t node = 0; node < levels.size(); ++node) {
    if (levels[node] != kNone) {
      order.emplace_back(levels[node], NodeId(node));
    }
  }
  std::sort(order.begin(), order.end());
  index_of_node_.assign(levels.size(), kNone);
  for (const auto& [level, node] : order) {
    index_of_node_[node.value()] = count();
    nodes_.push_back(node);
    level_.push_back(level);
  }
}

void UpDownReach::collect_hops(const Topology& topology) {
  std::vector<std::pair<std::uint32_t, Hop>> up;
  std::vector<std::pair<std::uint32_t, Hop>> down;
  for (std::uint32_t id = 0; id < topology.link_count(); ++id) {
    const Link& link = topology.link(LinkId(id));
    const std::uint32_t from = index_of_node_[link.source.value()];
    const std::uint32_t to = index_of_node_[link.target.value()];
    if (link.spec.kind != LinkKind::Network || from == kNone || to == kNone) {
      continue;
    }
    if (level_[from] < level_[to]) {
      up.push_back({from, {to, LinkId(id)}});
    } else if (level_[to] < level_[from]) {
      down.push_back({from, {to, LinkId(id)}});
    }
  }
  up_ = Lists<Hop>(count(), up);
  down_ = Lists<Hop>(count(), down);
}

void UpDownReach::find_sets() {
  ids_.assign(static_cast<std::size_t>(count()) * levels_ * levels_, 0);
  same_above_.assign(ids_.size(), false);
  for (std::uint32_t index = 0; index < count(); ++index) {  // From the lowest level up.
    ids_[slot(index, 0, level_[index])] = intern({{index, index + 1}});
    for (std::uint32_t level = 0; level < level_[index]; ++level) {
      ids_[slot(index, 0, level)] = unite_all(down(index), 0, level);
    }
  }
  for (std::uint32_t index = count(); index-- > 0;) {  // From the highest level down.
    for (std::uint32_t ups = 1; ups < levels_ - level_[index]; ++ups) {
      for (std::uint32_t level = 0; level <= level_[index] + ups; ++level) {
        const auto above = up(index);
        ids_[slot(index, ups, level)] = unite_all(above, ups - 1, level);
        same_above_[slot(index, ups, level)] = std::ranges::all_of(above, [&](const Hop& hop) {
          return ids_[slot(hop.other, ups - 1, level)] ==
                 ids_[slot(above.front().other, ups - 1, level)];
        });
      }
    }
  }
  set_index_.clear();
  union_index_.clear();
}

UpDownReach::SetId UpDownReach::unite_all(std::span<const Hop> hops, std::uint32_t ups,
                                          std::uint32_t level) {
  std::vector<SetId> parts;
  for (const Hop& hop : hops) {
    const SetId part = ids_[slot(hop.other, ups, level)];
    if (part != 0 && (parts.empty() || part != parts.back())) {
      parts.push_back(part);
    }
  }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  if (parts.size() < 2) {
    return parts.empty() ? 0 : parts.front();
  }
  const auto [known, is_new] = union_index_.try_emplace(parts, 0);
  if (is_new) {
    IntervalSet all;
    for (const SetId part : parts) {
      all.insert(all.end(), intervals_.begin() + set_offsets_[part],
                 intervals_.begin() + set_offsets_[part + 1]);
    }
    known->second = intern(unite(std::move(all)));
  }
  return known->second;
}

UpDownReach::SetId UpDownReach::intern(IntervalSet set) {
  const auto id = static_cast<SetId>(set_offsets_.size() - 1);
  const auto [known, is_new] = set_index_.try_emplace(std::move(set), id);
  if (is_new) {
    intervals_.insert(intervals_.end(), known->first.begin(), known->first.end());
    set_offsets_.push_back(static_cast<std::uint32_t>(intervals_.size()));
  }
  return known->second;
}

void UpDownReach::find_order() {
  for (std::uint32_t index = 0; index < count(); ++index) {
    Interval last;
    bool is_ordered = true;
    for (const Hop& hop : down(index)) {
      const auto leaves = set(hop.other, 0, 0);
      is_ordered = is_ordered && !leaves.empty() && leaves.front().first >= last.first &&
                   leaves.back().end >= last.end;
      last = is_ordered ? Interval{leaves.front().first, leaves.back().end} : last;
    }
    is_ordered_.push_back(is_ordered);
  }
}

std::span<const UpDownReach::Hop> UpDownReach::down_to(std::uint32_t index,
                                                       std::uint32_t leaf) const {
  const auto all = down(index);
  if (!is_ordered_[index]) {
    return all;
  }
  const auto first = std::partition_point(all.begin(), all.end(), [&](const Hop& hop) {
    return set(hop.other, 0, 0).back().end <= leaf;
  });
  const auto end = std::partition_point(
      first, all.end(), [&](const Hop& hop) { return set(hop.other, 0, 0).front().first <= leaf; });
  return {first, end};
}

std::optional<std::uint32_t> UpDownReach::ups(std::uint32_t from, std::uint32_t to) const {
  for (std::uint32_t ups = 0; ups < levels_ - level_[from]; ++ups) {
    if (contains(set(from, ups, level_[to]), to)) {
      return ups;
    }
  }
  return std::nullopt;
}

}  // namespace trainyard
