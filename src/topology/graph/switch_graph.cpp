// SPDX-License-Identifier: Apache-2.0
#include "topology/graph/switch_graph.h"

#include <algorithm>
#include <numeric>

namespace trainyard {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// Sums the rates of neighbours in the list that `same` takes for one.
template <typename T, typename Same, typename Add>
void merge_neighbours(std::vector<T>& list, const Same& same, const Add& add) {
  std::size_t kept = 0;
  for (std::size_t next = 0; next < list.size(); ++next) {
    if (kept > 0 && same(list[kept - 1], list[next])) {
      add(list[kept - 1], list[next]);
    } else {
      list[kept++] = list[next];
    }
  }
  list.resize(kept);
}

}  // namespace

SwitchGraph::SwitchGraph(const Topology& topology) : index_of_node_(topology.node_count(), kNone) {
  for (std::uint32_t node = 0; node < topology.node_count(); ++node) {
    if (topology.node(NodeId(node)).kind == NodeKind::Switch) {
      index_of_node_[node] = size();
      switches_.emplace_back(node);
    }
  }
  collect(topology);
  find_tiers();
  components_ = switch_regions(size(), edges_, [](const SwitchEdge&) { return true; });
}

void SwitchGraph::collect(const Topology& topology) {
  for (const Link& link : topology.links()) {
    if (link.spec.kind != LinkKind::Network) {
      continue;
    }
    const std::uint32_t source = index_of_node_[link.source.value()];
    const std::uint32_t target = index_of_node_[link.target.value()];
    const std::int64_t rate = link.spec.bandwidth.bits_per_second();
    if (source != kNone && target != kNone) {
      edges_.push_back({.source = source, .target = target, .links = 1, .bits_per_second = rate});
    } else if (target != kNone) {
      ports_.push_back({.endpoint = link.source, .at = target, .bits_per_second = rate});
    }
  }
  std::ranges::sort(edges_, {},
                    [](const SwitchEdge& edge) { return std::pair(edge.source, edge.target); });
  merge_neighbours(
      edges_,
      [](const SwitchEdge& a, const SwitchEdge& b) {
        return a.source == b.source && a.target == b.target;
      },
      [](SwitchEdge& sum, const SwitchEdge& edge) {
        sum.links += edge.links;
        sum.bits_per_second += edge.bits_per_second;
      });
  std::ranges::sort(ports_, {},
                    [](const SwitchPort& port) { return std::pair(port.at, port.endpoint); });
  merge_neighbours(
      ports_,
      [](const SwitchPort& a, const SwitchPort& b) {
        return a.at == b.at && a.endpoint == b.endpoint;
      },
      [](SwitchPort& sum, const SwitchPort& port) { sum.bits_per_second += port.bits_per_second; });
  offsets_.assign(size() + 1U, 0);
  for (const SwitchEdge& edge : edges_) {
    ++offsets_[edge.source + 1];
  }
  std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
}

void SwitchGraph::find_tiers() {
  tiers_.assign(size(), kNone);
  std::vector<std::uint32_t> queue;
  const auto enter = [&](std::uint32_t index, std::uint32_t tier) {
    if (tiers_[index] == kNone) {
      tiers_[index] = tier;
      queue.push_back(index);
    }
  };
  for (const SwitchPort& port : ports_) {
    enter(port.at, 0);
  }
  for (std::size_t next = 0; next < queue.size(); ++next) {
    for (const SwitchEdge& edge : edges_from(queue[next])) {
      enter(edge.target, tiers_[queue[next]] + 1);
    }
  }
}

std::optional<std::uint32_t> SwitchGraph::index_of(NodeId node) const {
  const std::uint32_t index = index_of_node_[node.value()];
  return index == kNone ? std::nullopt : std::optional(index);
}

std::vector<std::uint32_t> SwitchGraph::leaves() const {
  std::vector<std::uint32_t> leaves;
  for (std::uint32_t index = 0; index < size(); ++index) {
    if (tiers_[index] == 0) {
      leaves.push_back(index);
    }
  }
  return leaves;
}

std::optional<std::uint32_t> SwitchGraph::tier(std::uint32_t index) const {
  return tiers_[index] == kNone ? std::nullopt : std::optional(tiers_[index]);
}

// Union-find, with the least index as the root of each tree.
std::vector<std::uint32_t> switch_regions(std::uint32_t switches, std::span<const SwitchEdge> edges,
                                          const std::function<bool(const SwitchEdge&)>& joins) {
  std::vector<std::uint32_t> joined(switches);
  std::iota(joined.begin(), joined.end(), 0U);
  const auto root = [&](std::uint32_t index) {
    while (joined[index] != index) {
      joined[index] = joined[joined[index]];
      index = joined[index];
    }
    return index;
  };
  for (const SwitchEdge& edge : edges) {
    if (joins(edge)) {
      const std::uint32_t a = root(edge.source);
      const std::uint32_t b = root(edge.target);
      joined[std::max(a, b)] = std::min(a, b);
    }
  }
  for (std::uint32_t index = 0; index < switches; ++index) {
    joined[index] = root(index);
  }
  return joined;
}

}  // namespace trainyard
