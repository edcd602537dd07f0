// SPDX-License-Identifier: Apache-2.0
// Which switches of a fabric in tiers reach which by going up and then down.
//
// The level of a switch is the fewest cables between it and a switch with endpoints, so a cable
// leads one level up or down, or joins two switches of a level and is not used. Switches are
// numbered by level, then by node: the leaves of a pod, which the builder adds one after the other,
// are neighbours. With
//   D(s, k)    = {s} if s is on level k, else the union of D(c, k) over the links down from s to c,
//   U(s, 0, k) = D(s, k),
//   U(s, u, k) = the union of U(p, u - 1, k) over the links up from s to p,
// U(s, u, k) are the switches of level k that a path from s reaches which goes u times up and then
// down. In a regular fabric each is an interval or a few; each fault adds at most one to those that
// it concerns. Equal sets are stored once: all leaves of a pod have the same, and all switches of a
// pod or a group of cores that have the same neighbours.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "topology/graph/interval_set.h"
#include "topology/graph/topology.h"
#include "topology/routing/layer.h"

namespace trainyard {

class UpDownReach {
 public:
  struct Hop {
    std::uint32_t other;  // The switch at the far end.
    LinkId link;
  };

  explicit UpDownReach(const Topology& topology);

  // Switches from which, or to which, there is a way to an endpoint; the others are not numbered.
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(nodes_.size()); }
  [[nodiscard]] std::uint32_t levels() const { return levels_; }
  [[nodiscard]] NodeId node(std::uint32_t index) const { return nodes_[index]; }
  [[nodiscard]] std::optional<std::uint32_t> index(NodeId node) const;
  [[nodiscard]] std::uint32_t level(std::uint32_t index) const { return level_[index]; }
  // In the order in which the links were added.
  [[nodiscard]] std::span<const Hop> up(std::uint32_t index) const { return up_.of(index); }
  [[nodiscard]] std::span<const Hop> down(std::uint32_t index) const { return down_.of(index); }
  // Those of down(index), neighbours in it, that may lead to a switch of level 0. In a fabric that
  // was cabled in order these are only the links that do, found by bisection.
  [[nodiscard]] std::span<const Hop> down_to(std::uint32_t index, std::uint32_t leaf) const;

  // U(index, ups, level); empty where there is nothing, for any number.
  [[nodiscard]] std::span<const Interval> set(std::uint32_t index, std::uint32_t ups,
                                              std::uint32_t level) const {
    return ups < levels_ && level < levels_ ? set_of(ids_[slot(index, ups, level)])
                                            : std::span<const Interval>();
  }
  // Whether U(p, ups - 1, level) is the same for all p above `index`: then either all links up are
  // ways to a target or none is.
  [[nodiscard]] bool same_above(std::uint32_t index, std::uint32_t ups, std::uint32_t level) const {
    return same_above_[slot(index, ups, level)];
  }
  // The fewest times up from `from` on a way to `to`, if there is one.
  [[nodiscard]] std::optional<std::uint32_t> ups(std::uint32_t from, std::uint32_t to) const;

 private:
  using SetId = std::uint32_t;  // Zero: the empty set.

  void find_levels(const Topology& topology);
  void number(const std::vector<std::uint32_t>& levels);
  void collect_hops(const Topology& topology);
  void find_sets();
  void find_order();
  [[nodiscard]] SetId unite_all(std::span<const Hop> hops, std::uint32_t ups, std::uint32_t level);
  [[nodiscard]] SetId intern(IntervalSet set);
  [[nodiscard]] std::span<const Interval> set_of(SetId id) const {
    return {intervals_.data() + set_offsets_[id], set_offsets_[id + 1] - set_offsets_[id]};
  }
  [[nodiscard]] std::size_t slot(std::uint32_t index, std::uint32_t ups,
                                 std::uint32_t level) const {
    return (static_cast<std::size_t>(index) * levels_ + ups) * levels_ + level;
  }

  std::uint32_t levels_ = 0;
  std::vector<NodeId> nodes_;
  std::vector<std::uint32_t> level_;
  std::vector<std::uint32_t> index_of_node_;
  Lists<Hop> up_;
  Lists<Hop> down_;
  std::vector<SetId> ids_;        // One per slot.
  std::vector<bool> same_above_;  // One per slot.
  // For each switch: whether the leaves below, from the least to the greatest, begin and end later
  // from link to link.
  std::vector<bool> is_ordered_;
  std::vector<std::uint32_t> set_offsets_ = {0, 0};
  std::vector<Interval> intervals_;
  // While the sets are found.
  std::map<IntervalSet, SetId> set_index_;
  std::map<std::vector<SetId>, SetId> union_index_;
};

}  // namespace trainyard
