// SPDX-License-Identifier: Apache-2.0
#include "topology/routing/chooser.h"

#include <algorithm>

#include "sim/random.h"

namespace trainyard {

Chooser::Chooser(const RoutingOptions& options, NodeId source, NodeId target,
                 std::uint32_t flow_label, std::uint32_t target_index, const LinkLoads* loads,
                 const std::optional<NicTurns>& cables)
    : policy_(&traits(options.policy)),
      hash_(hash64(hash64(hash64(options.seed) ^ flow_label) ^
                   ((static_cast<std::uint64_t>(source.value()) << 32) | target.value()))),
      flow_label_(flow_label),
      target_index_(target_index),
      loads_(policy_->switches_choose() ? loads : nullptr),
      cables_(cables) {}

std::uint32_t Chooser::pick(NodeId node, std::uint32_t count, std::uint32_t divisor) const {
  if (count == 1) {
    return 0;
  }
  if (turn_) {
    return *turn_ % count;
  }
  return policy_->choice == LinkChoice::Index ? target_index_ / divisor % count
                                              : hashed(node.value(), count);
}

std::uint32_t Chooser::pick_above(NodeId node, std::uint32_t count,
                                  std::span<const LevelLinks> below) const {
  if (count == 1) {
    return 0;
  }
  if (turn_) {
    return *turn_ % count;
  }
  if (policy_->choice != LinkChoice::Index) {
    return hashed(node.value(), count);
  }
  std::uint32_t index = target_index_;
  for (const LevelLinks& level : below) {
    index = index / level.ways * level.parallel + index % level.parallel;
  }
  return index % count;
}

std::uint32_t Chooser::pick_ports(NodeId source, std::uint32_t count) const {
  if (count == 1) {
    return 0;
  }
  return policy_->choice == LinkChoice::Index ? flow_label_ % count : hashed(source.value(), count);
}

std::uint32_t Chooser::hashed(std::uint64_t place, std::uint32_t count) const {
  return static_cast<std::uint32_t>(((hash64(hash_ ^ place) >> 32) * count) >> 32);
}

void LevelCount::add(std::vector<std::uint32_t> targets) {
  ways_ = std::max(ways_, targets.size());
  std::sort(targets.begin(), targets.end());
  const auto end = std::unique(targets.begin(), targets.end());
  targets_ = std::max(targets_, static_cast<std::size_t>(end - targets.begin()));
}

LevelLinks LevelCount::links() const {
  const std::size_t parallel = ways_ % targets_ == 0 ? ways_ / targets_ : 1;
  return {.ways = static_cast<std::uint32_t>(ways_),
          .parallel = static_cast<std::uint32_t>(parallel)};
}

LinkId Chooser::pick(NodeId node, std::span<const LinkId> links, std::uint32_t divisor) const {
  if (loads_ == nullptr) {
    return links[pick(node, static_cast<std::uint32_t>(links.size()), divisor)];
  }
  return pick_least_loaded(node, links);
}

LinkId Chooser::pick_above(NodeId node, std::span<const LinkId> links,
                           std::span<const LevelLinks> below) const {
  if (loads_ == nullptr) {
    return links[pick_above(node, static_cast<std::uint32_t>(links.size()), below)];
  }
  return pick_least_loaded(node, links);
}

LinkId Chooser::pick_least_loaded(NodeId node, std::span<const LinkId> links) const {
  std::uint64_t min = std::numeric_limits<std::uint64_t>::max();
  std::uint32_t equals = 0;
  for (const LinkId link : links) {
    const std::uint64_t load = loads_->of(link);
    equals = load < min ? 1 : equals + (load == min ? 1 : 0);
    min = std::min(min, load);
  }
  std::uint32_t skip = hashed(node.value(), equals);
  const auto is_chosen = [&](LinkId link) { return loads_->of(link) == min && skip-- == 0; };
  return *std::ranges::find_if(links, is_chosen);
}

std::uint32_t Chooser::draw(std::uint32_t count) const {
  // Not a node's number, so that the draw is independent of the choices at nodes.
  constexpr std::uint64_t kNoNode = std::uint64_t{1} << 32;
  return hashed(kNoNode, count);
}

std::uint64_t Chooser::load(std::span<const LinkId> path) const {
  std::uint64_t sum = 0;
  for (const LinkId link : path) {
    sum += loads_ == nullptr ? 0 : loads_->of(link);
  }
  return sum;
}

}  // namespace trainyard
