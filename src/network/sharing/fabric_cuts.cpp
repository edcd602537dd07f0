// SPDX-License-Identifier: Apache-2.0
#include "network/sharing/fabric_cuts.h"

#include <algorithm>
#include <limits>

namespace trainyard {

bool is_between_switches(const Topology& topology, LinkId id) {
  const Link& link = topology.link(id);
  return !topology.node(link.source).server && !topology.node(link.target).server;
}

Load without_fabric(const Topology& topology, const Load& load) {
  Load kept = load;
  std::erase_if(kept,
                [&](const LinkWeight& one) { return is_between_switches(topology, one.link); });
  return kept;
}

FabricCuts::FabricCuts(const Topology& topology) : topology_(topology), graph_(topology) {
  std::uint32_t tiers = 0;
  for (std::uint32_t index = 0; index < graph_.size(); ++index) {
    tiers = std::max(tiers, graph_.tier(index).value_or(0) + 1);
  }
  for (std::uint32_t tier = 0; tier < tiers; ++tier) {
    regions_.push_back(switch_regions(graph_.size(), graph_.edges(), [&](const SwitchEdge& edge) {
      const auto source = graph_.tier(edge.source);
      const auto target = graph_.tier(edge.target);
      return source && target && std::max(*source, *target) <= tier;
    }));
  }
  for (std::uint32_t id = 0; id < topology.link_count(); ++id) {
    if (const std::optional<Cut> cut = cut_of(LinkId(id))) {
      bits_per_second_[*cut] +=
          static_cast<double>(topology.link(LinkId(id)).spec.bandwidth.bits_per_second());
    }
  }
}

std::optional<FabricCuts::Cut> FabricCuts::cut_of(LinkId id) const {
  const Link& link = topology_.link(id);
  const auto source = graph_.index_of(link.source);
  const auto target = graph_.index_of(link.target);
  if (!source && !target) {
    return std::nullopt;
  }
  if (!source || !target) {
    return Cut{std::nullopt, source ? link.target.value() : link.source.value(), !source};
  }
  const auto from = graph_.tier(*source);
  const auto to = graph_.tier(*target);
  if (!from || !to || *from == *to) {
    return std::nullopt;
  }
  const std::uint32_t tier = std::min(*from, *to);
  return Cut{tier, regions_[tier][*from < *to ? *source : *target], *from < *to};
}

double FabricCuts::rate(const Load& load) const {
  std::map<Cut, double> weights;
  double min = std::numeric_limits<double>::infinity();
  for (const LinkWeight& one : load) {
    const Link& link = topology_.link(one.link);
    if (const std::optional<Cut> cut = cut_of(one.link)) {
      weights[*cut] += one.weight;
    } else if (!graph_.index_of(link.source) && !graph_.index_of(link.target)) {
      const auto bits = static_cast<double>(link.spec.bandwidth.bits_per_second());
      min = std::min(min, bits / one.weight);
    }
  }
  for (const auto& [cut, weight] : weights) {
    min = std::min(min, bits_per_second_.at(cut) / weight);
  }
  return min;
}

}  // namespace trainyard
