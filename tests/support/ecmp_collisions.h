// SPDX-License-Identifier: Apache-2.0
// Computes how often few equal flows meet on one of the links over which ECMP spreads them.
#pragma once

#include <vector>

namespace trainyard {

// Equal flows that a hash spreads over equal links, each link as likely for each flow.
struct EcmpCollisions {
  std::vector<double> max;  // Element k - 1: the chance that the fullest link has k flows.
  double mean_max = 0.0;    // Mean number of flows on the fullest link.
  // Share of the ideal rate of the slowest flow: mean of flows / links / fullest.
  double slowest_share = 0.0;
};

// Exact but for rounding. `flows` and `links` must be positive.
[[nodiscard]] EcmpCollisions ecmp_collisions(int flows, int links);

}  // namespace trainyard
