// SPDX-License-Identifier: Apache-2.0
// The tournament tree against a plain array.
#include "support/catch.h"

#include "network/flow/earliest.h"

#include "sim/random.h"

namespace trainyard {
namespace {

std::vector<std::uint32_t> min_of(const EarliestTimes& times) {
  std::vector<std::uint32_t> indices;
  times.collect_least(indices);
  return indices;
}

TEST_CASE("an empty tournament has no least time") {
  const EarliestTimes times;
  REQUIRE(times.min() == SimTime::max());
  REQUIRE(min_of(times).empty());
}

TEST_CASE("the tournament finds the least time and all that hold it, while it grows and changes") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "earliest test");
    EarliestTimes times;
    std::vector<SimTime> model;
    for (int step = 0; step < 400; ++step) {
      if (model.empty() || random.below(20) == 0) {
        model.resize(model.size() + 1 + random.below(50), SimTime::max());
        times.grow(model.size());
      }
      const std::uint64_t index = random.below(model.size());
      model[index] = random.below(10) == 0 ? SimTime::max()
                                           : SimTime(static_cast<std::int64_t>(random.below(40)));
      times.set(static_cast<std::uint32_t>(index), model[index]);
      const SimTime min = *std::ranges::min_element(model);
      REQUIRE(times.min() == min);
      REQUIRE(times.at(static_cast<std::uint32_t>(index)) == model[index]);
      if (min != SimTime::max()) {
        std::vector<std::uint32_t> holders;
        for (std::uint32_t i = 0; i < model.size(); ++i) {
          if (model[i] == min) {
            holders.push_back(i);
          }
        }
        REQUIRE(min_of(times) == holders);
      }
    }
  }
}

}  // namespace
}  // namespace trainyard
