// SPDX-License-Identifier: Apache-2.0
// One node for all NVSwitch planes is exact where GPUs spread their links evenly: each transfer
// over six switches by a sixth takes as long as over one switch with all links.
#include "support/catch.h"

#include "network/flow/max_min.h"

#include <array>
#include <cstdlib>
#include <vector>

#include "sim/random.h"

namespace trainyard {
namespace {

constexpr std::uint32_t kGpus = 8;
constexpr std::uint32_t kPlanes = 6;

struct Pair {
  std::uint32_t source;
  std::uint32_t target;
};

// Bits per second of each pair where every GPU has `planes` links, each of rate `port`, and every
// transfer has a flow on each plane. Links up are numbered first, then links down.
std::vector<FlowRate> rates(const std::vector<Pair>& pairs, std::uint32_t planes, Bandwidth port) {
  const std::vector<Bandwidth> capacities(std::size_t{2} * kGpus * planes, port);
  MaxMinSolver solver(capacities);
  std::vector<MaxMinSolver::ClassIndex> classes;
  for (const Pair& pair : pairs) {
    for (std::uint32_t plane = 0; plane < planes; ++plane) {
      const std::array<MaxMinSolver::LinkIndex, 2> path = {pair.source * planes + plane,
                                                           (kGpus + pair.target) * planes + plane};
      classes.push_back(solver.add_class(path));
      solver.set_multiplicity(classes.back(), 1);
    }
  }
  solver.solve();
  std::vector<FlowRate> sums;
  for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
    FlowRate sum = 0;
    for (std::uint32_t plane = 0; plane < planes; ++plane) {
      sum += solver.rate(classes[pair * planes + plane]);
    }
    sums.push_back(sum);
  }
  return sums;
}

TEST_CASE("six planes of NVSwitches carry what one switch with all links does") {
  // A100: 12 NVLinks of 25 GB/s, two to each of six chips.
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    RandomStream random(seed, "pairs");
    std::vector<Pair> pairs;
    for (std::uint32_t source = 0; source < kGpus; ++source) {
      for (std::uint32_t target = 0; target < kGpus; ++target) {
        if (source != target && random.below(3) == 0) {
          pairs.push_back({source, target});
        }
      }
    }
    const std::vector<FlowRate> one = rates(pairs, 1, gigabytes_per_second(300));
    const std::vector<FlowRate> six = rates(pairs, kPlanes, gigabytes_per_second(50));
    for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
      // In units of 2^-16 bit/s: a link leaves less than its flows unused by rounding.
      const auto difference = static_cast<std::int64_t>(one[pair] - six[pair]);
      REQUIRE(std::abs(difference) <= std::int64_t{kPlanes} * kGpus * kGpus);
    }
  }
}

}  // namespace
}  // namespace trainyard
