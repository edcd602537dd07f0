// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <cmath>

#include "hw/dcqcn_fluid.h"
#include "support/transport_goldens.h"

namespace trainyard {
namespace {

SimTime seconds_of(double value) {
  return picoseconds(std::llround(value * 1e12));
}

DcqcnFluid fluid_of(const GoldenParams& params) {
  DcqcnFluid fluid;
  fluid.line = Bandwidth(params.integer("C"));
  fluid.additive = Bandwidth(params.integer("RAI"));
  fluid.byte_counter = Bytes(params.text("B") == "none" ? 0 : params.integer("B"));
  fluid.rate_timer = seconds_of(params.number("T"));
  fluid.cnp_interval = seconds_of(params.number("tau"));
  fluid.alpha_interval = seconds_of(params.number("taup"));
  fluid.threshold = static_cast<int>(params.integer("F"));
  fluid.packet = Bytes(params.integer("packet_bytes"));
  fluid.kmin = Bytes(params.integer("Kmin"));
  fluid.kmax = Bytes(params.integer("Kmax"));
  fluid.pmax = params.number("Pmax");
  return fluid;
}

// Goldens have six significant digits.
bool near_golden(double value, double golden) {
  return std::abs(value - golden) <= 1e-5 * golden;
}

}  // namespace

TEST_CASE("the fixed points of DCQCN are the golden ones", "[transport]") {
  const auto sets = transport_goldens("dcqcn_fixed_point").required("sets").items();
  REQUIRE(sets.size() == 4);
  for (const ConfigNode& set : sets) {
    const DcqcnFluid fluid = fluid_of(GoldenParams(set));
    const GoldenTable table(set);
    for (std::size_t row = 0; row < table.rows(); ++row) {
      const DcqcnFixedPoint point =
          dcqcn_fixed_point(fluid, static_cast<int>(table.integer(row, "N")));
      INFO(set.required("id").as_string() << " row " << row);
      REQUIRE(near_golden(point.mark, table.number(row, "p_exact")));
      REQUIRE(near_golden(point.mark_approx, table.number(row, "p_approx")));
      REQUIRE(point.alpha == Approx(table.number(row, "alpha")).margin(1e-6));
      REQUIRE(point.is_pinned == (table.text(row, "q_exact_bytes") == "pinned_at_Kmax"));
      if (!point.is_pinned) {
        REQUIRE(point.queue == Approx(table.number(row, "q_exact_bytes")).margin(0.51));
      }
    }
  }
}

}  // namespace trainyard
