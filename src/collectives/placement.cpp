// SPDX-License-Identifier: Apache-2.0
#include "collectives/placement.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace trainyard {

namespace {

// Parallel direct links from each GPU of the first node to each other one.
std::vector<std::vector<int>> direct_links(const Cluster& cluster) {
  const auto gpus = static_cast<std::size_t>(cluster.gpus_per_node);
  std::vector<std::vector<int>> lanes(gpus, std::vector<int>(gpus, 0));
  for (std::size_t from = 0; from < gpus; ++from) {
    for (const LinkId id : cluster.topology.links_from(cluster.gpus[from])) {
      const Link& link = cluster.topology.link(id);
      for (std::size_t to = 0; to < gpus; ++to) {
        if (link.target == cluster.gpus[to]) {
          lanes[from][to] += link.spec.lanes;
        }
      }
    }
  }
  return lanes;
}

bool any_link(const std::vector<std::vector<int>>& lanes) {
  return std::ranges::any_of(lanes, [](const std::vector<int>& row) {
    return std::ranges::any_of(row, [](int count) { return count > 0; });
  });
}

std::vector<int> rotated(std::vector<int> order, std::size_t first) {
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first), order.end());
  return order;
}

// Picks rings, and where to cut them open, so that as many channels as NICs enter a node at each
// NIC and leave it at each NIC: every channel takes the cut that makes the fullest NIC least full,
// then loads its two NICs least, then uses the least used ring, then comes first.
std::vector<std::vector<int>> cut_rings(const std::vector<std::vector<int>>& rings, int channels,
                                        int nics) {
  const auto gpus = static_cast<int>(rings[0].size());
  const auto nic_of = [&](int gpu) { return static_cast<std::size_t>(gpu * nics / gpus); };
  std::vector<int> entering(static_cast<std::size_t>(nics), 0);
  std::vector<int> leaving = entering;
  std::vector<int> used(rings.size(), 0);
  std::vector<std::vector<int>> chosen;
  while (static_cast<int>(chosen.size()) < channels) {
    std::vector<int> best;
    std::size_t best_ring = 0;
    std::tuple<int, int, int> least{std::numeric_limits<int>::max(), 0, 0};
    for (std::size_t ring = 0; ring < rings.size(); ++ring) {
      for (std::size_t first = 0; first < rings[ring].size(); ++first) {
        std::vector<int> cut = rotated(rings[ring], first);
        const int in = entering[nic_of(cut.front())];
        const int out = leaving[nic_of(cut.back())];
        const std::tuple load{std::max(in, out), in + out, used[ring]};
        if (load < least) {
          least = load;
          best = std::move(cut);
          best_ring = ring;
        }
      }
    }
    ++entering[nic_of(best.front())];
    ++leaving[nic_of(best.back())];
    ++used[best_ring];
    chosen.push_back(std::move(best));
  }
  return chosen;
}

}  // namespace

Placement place(const Cluster& cluster, Algorithm algorithm, std::optional<int> channels) {
  Placement placement;
  placement.nodes = cluster.gpus;
  RankLayout& layout = placement.layout;
  layout.nodes = cluster.nodes;
  layout.ranks_per_node = cluster.gpus_per_node;
  layout.alternate = cluster.nodes > 1 && cluster.nodes % 2 == 0;

  std::vector<int> natural(static_cast<std::size_t>(cluster.gpus_per_node));
  std::iota(natural.begin(), natural.end(), 0);
  if (algorithm != Algorithm::Ring && algorithm != Algorithm::Tree) {
    layout.local_orders.assign(static_cast<std::size_t>(channels.value_or(1)), natural);
    return placement;
  }

  std::vector<std::vector<int>> rings;
  const std::vector<std::vector<int>> lanes = direct_links(cluster);
  if (any_link(lanes)) {
    rings = disjoint_rings(lanes);
    layout.chain_in_single_node = !rings.empty();
    if (rings.empty()) {
      placement.remarks.push_back(
          "the direct links between the GPUs of a node form no ring: the channels visit the GPUs "
          "in their natural order, in part over PCIe");
    }
  }
  const int fewest = std::max(2, static_cast<int>(rings.size()));
  if (rings.empty()) {
    rings.push_back(natural);
  }
  if (cluster.nodes == 1) {
    for (int channel = 0; channel < channels.value_or(fewest); ++channel) {
      layout.local_orders.push_back(rings[static_cast<std::size_t>(channel) % rings.size()]);
    }
    return placement;
  }
  // A multiple of both, so that every NIC and every ring carries the same.
  constexpr int kMostChannels = 64;
  const int nics = cluster.nics_per_node > 0
                       ? std::min(cluster.nics_per_node, cluster.gpus_per_node)
                       : cluster.gpus_per_node;
  const int both = std::lcm(fewest, nics);
  const int even = both <= kMostChannels ? both : std::max(fewest, nics);
  layout.local_orders = cut_rings(rings, channels.value_or(even), nics);
  return placement;
}

}  // namespace trainyard
