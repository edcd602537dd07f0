// SPDX-License-Identifier: Apache-2.0
#include "support/ecmp_collisions.h"

#include <cstddef>

#include "sim/check.h"

namespace trainyard {
namespace {

// The chance that no link has more than `most` flows: n! / m^n times the coefficient of x^n in
// (sum over j <= most of x^j / j!)^m. Computed link by link as a chance, which cannot overflow:
// of the flows that are left, a binomial share goes to the next of the links that are left.
double chance_within(int flows, int links, int max) {
  const auto count = static_cast<std::size_t>(flows);
  std::vector<double> left(count + 1, 0.0);  // Chance that so many flows go to later links.
  left[count] = 1.0;
  for (int link = 0; link < links; ++link) {
    const double here = 1.0 / (links - link);
    std::vector<double> after(count + 1, 0.0);
    for (std::size_t n = 0; n <= count; ++n) {
      if (left[n] <= 0.0) {
        continue;
      }
      // Binomial chances of j out of n, from j = 0 up.
      double chance = 1.0;
      for (std::size_t i = 0; i < n; ++i) {
        chance *= 1.0 - here;
      }
      for (std::size_t j = 0; j <= n && j <= static_cast<std::size_t>(max); ++j) {
        if (here >= 1.0) {
          chance = j == n ? 1.0 : 0.0;
        }
        after[n - j] += left[n] * chance;
        chance *= static_cast<double>(n - j) / static_cast<double>(j + 1) * here / (1.0 - here);
      }
    }
    left = after;
  }
  return left[0];
}

}  // namespace

EcmpCollisions ecmp_collisions(int flows, int links) {
  CHECK(flows > 0 && links > 0, "collisions of nothing");
  EcmpCollisions result;
  double before = 0.0;
  for (int max = 1; max <= flows; ++max) {
    const double within = chance_within(flows, links, max);
    const double exactly = within - before;
    before = within;
    result.max.push_back(exactly);
    result.mean_max += exactly * max;
    result.slowest_share += exactly * flows / links / max;
  }
  return result;
}

}  // namespace trainyard
