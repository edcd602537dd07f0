// SPDX-License-Identifier: Apache-2.0
#include "parallelism/traffic/load_signature.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace trainyard {

void append_signature(const Topology& topology, const std::vector<Load>& loads,
                      ConnectionLoads& connections, std::vector<std::int64_t>& key) {
  for (const SimTime latency : connections.take_latencies()) {
    key.push_back(latency.picoseconds());
  }
  for (const Load& load : loads) {
    std::vector<std::pair<std::int64_t, std::int64_t>> used;
    for (const LinkWeight& one : load) {
      const Link& link = topology.link(one.link);
      if (topology.node(link.source).server || topology.node(link.target).server) {
        constexpr double kPartsPerMillion = 1e6;
        used.emplace_back(link.spec.bandwidth.bits_per_second(),
                          std::llround(one.weight * kPartsPerMillion));
      }
    }
    std::sort(used.begin(), used.end());
    key.push_back(static_cast<std::int64_t>(used.size()));
    for (const auto& [bandwidth, weight] : used) {
      key.push_back(bandwidth);
      key.push_back(weight);
    }
  }
}

std::int64_t min_rate(const Topology& topology, const Load& load) {
  std::int64_t min = std::numeric_limits<std::int64_t>::max();
  for (const LinkWeight& one : load) {
    const auto rate = static_cast<double>(topology.link(one.link).spec.bandwidth.bits_per_second());
    min = std::min(min, static_cast<std::int64_t>(std::llround(rate / one.weight)));
  }
  return min;
}

}  // namespace trainyard
