// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "support/simulated_networks.h"

namespace trainyard {

TEST_CASE("a network of tiers is found whatever its switches' numbers are") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed=" << seed);
    std::mt19937_64 engine(seed);
    TierShape drawn = drawn_shape(engine);
    const SimulatedNetwork network = network_of(drawn, engine);
    const std::optional<TierShape> found = shape_of(network);
    REQUIRE(found.has_value());
    REQUIRE(found->tiers == drawn.tiers);
    REQUIRE(found->spines == drawn.spines);
    REQUIRE(found->cores == drawn.cores);
  }
}

TEST_CASE("a network with a cable less or another rate has no shape") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed=" << seed);
    std::mt19937_64 engine(seed);
    TierShape drawn = drawn_shape(engine);
    SimulatedNetwork network = network_of(drawn, engine);
    const std::size_t at = engine() % network.cables.size();
    if (seed % 2 == 0) {
      network.cables.erase(network.cables.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      network.cables[at].rate = Bandwidth(network.cables[at].rate.bits_per_second() / 2);
    }
    REQUIRE(!shape_of(network));
  }
}

}  // namespace trainyard
