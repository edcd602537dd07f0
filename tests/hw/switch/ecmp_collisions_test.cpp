// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <numeric>

#include "support/ecmp_collisions.h"
#include "support/transport_goldens.h"

namespace trainyard {

TEST_CASE("flows meet on links as often as the golden chances say", "[transport]") {
  const ConfigNode section = transport_goldens("ecmp_collisions");
  const GoldenTable table(section);
  const std::vector<ConfigNode> rows = section.required("rows").items();
  REQUIRE(table.rows() == 10);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const EcmpCollisions collisions =
        ecmp_collisions(static_cast<int>(table.integer(row, "flows")),
                        static_cast<int>(table.integer(row, "uplinks")));
    INFO("row " << row);
    REQUIRE(collisions.mean_max == Approx(table.number(row, "E_max_load")).margin(0.51e-6));
    REQUIRE(collisions.slowest_share ==
            Approx(table.number(row, "E_slowest_fraction_of_ideal")).margin(0.51e-6));
    const std::vector<ConfigNode> chances = rows[row].items().back().items();
    for (std::size_t i = 0; i < chances.size(); ++i) {
      REQUIRE(collisions.max.at(i) ==
              Approx(golden_number(chances[i].as_string())).margin(0.51e-6));
    }
    REQUIRE(std::accumulate(collisions.max.begin(), collisions.max.end(), 0.0) == Approx(1.0));
  }
}

TEST_CASE("one flow never collides, and one link takes all", "[transport]") {
  REQUIRE(ecmp_collisions(1, 8).mean_max == Approx(1.0));
  REQUIRE(ecmp_collisions(8, 1).mean_max == Approx(8.0));
  REQUIRE(ecmp_collisions(8, 1).slowest_share == Approx(1.0));
}

}  // namespace trainyard
