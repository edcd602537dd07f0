// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/graph/switch_regions.h"

namespace trainyard {

TEST_CASE("regions are joined by the edges that are asked for, whatever their direction") {
  const std::vector<SwitchEdge> edges{{.source = 4, .target = 3, .links = 1},
                                      {.source = 3, .target = 1, .links = 1},
                                      {.source = 2, .target = 0, .links = 2},
                                      {.source = 1, .target = 2, .links = 2}};
  const auto regions = [&](std::uint32_t least, std::uint32_t most) {
    return switch_regions(5, edges, [&](const SwitchEdge& edge) {
      return edge.links >= least && edge.links <= most;
    });
  };
  using Regions = std::vector<std::uint32_t>;
  REQUIRE(regions(1, 1) == Regions{0, 1, 2, 1, 1});
  REQUIRE(regions(2, 2) == Regions{0, 0, 0, 3, 4});
  REQUIRE(regions(1, 2) == Regions{0, 0, 0, 0, 0});
  REQUIRE(regions(3, 3) == Regions{0, 1, 2, 3, 4});
}

}  // namespace trainyard
