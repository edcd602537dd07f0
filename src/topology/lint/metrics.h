// SPDX-License-Identifier: Apache-2.0
// Measures what a fabric can carry, beside single routes: cuts, diameter, tiers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topology/cluster/cluster.h"
#include "topology/graph/switch_graph.h"
#include "topology/routing/routing.h"

namespace trainyard {

// A way to part the endpoints in two, and the most that flows from the first part to the second by
// any routing. The bisection bandwidth is the least over all ways to halve the endpoints, so each
// of these is an upper bound on it.
struct CutBandwidth {
  std::string name;
  std::int64_t bits_per_second = 0;
  // The rate that the smaller part injects: the fabric cannot do better.
  std::int64_t injection_bits_per_second = 0;
};

struct Diameter {
  int links = 0;  // Between two switches with endpoints.
  bool at_least = false;
};

// The switches that are equally many hops away from the nearest endpoint.
struct TierLoad {
  int switches = 0;
  // The rates of one switch, summed over its links to endpoints and lower tiers, and to higher
  // tiers.
  std::int64_t down_bits_per_second = 0;
  std::int64_t up_bits_per_second = 0;
  // Down over up; zero where no switch of the tier has links up.
  double min_oversubscription = 0.0;
  double max_oversubscription = 0.0;
  NodeId worst{};  // A switch with the most; the rates above are its own.
};

// "12.5 GB/s".
[[nodiscard]] std::string rate_text(std::int64_t bits_per_second);

// Halves of the servers in order; for grids the two halves of each dimension, for dragonflies those
// of the groups in order. Empty without a fabric or with endpoints of one server only. The first is
// the worst: the least share of what its smaller part injects.
[[nodiscard]] std::vector<CutBandwidth> cut_bandwidths(const Cluster& cluster,
                                                       const SwitchGraph& graph);

// Returns none if no two switches have endpoints. Counts shortest paths from every leaf where that
// is soon done, and otherwise from some of them: then the diameter may be longer.
[[nodiscard]] std::optional<Diameter> find_diameter(const SwitchGraph& graph, Routing& routing);

// Returns the load of each tier, leaves first.
[[nodiscard]] std::vector<TierLoad> tier_loads(const SwitchGraph& graph);

}  // namespace trainyard
