// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <cmath>

#include "support/dcqcn_fluid.h"
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

namespace {

// Zhu et al., SIGCOMM 2015: 40 Gb/s, packets of 1000 B; R_HAI as in bobzhuyb/ns3-rdma.
DcqcnFluid paper_fluid() {
  return {.line = gigabits_per_second(40),
          .additive = Bandwidth(40'000'000),
          .hyper = Bandwidth(200'000'000),
          .byte_counter = Bytes(10'000'000),
          .rate_timer = microseconds(55),
          .cnp_interval = microseconds(50),
          .alpha_interval = microseconds(55),
          .threshold = 5,
          .packet = Bytes(1000),
          .kmin = Bytes(5'000),
          .kmax = Bytes(200'000),
          .pmax = 0.01};
}

}  // namespace

TEST_CASE("from CNP to CNP a flow rests where the fluid does, but for the dead time after each",
          "[transport]") {
  DcqcnFluid fluid = paper_fluid();
  for (const int flows : {2, 4, 8, 10}) {
    INFO(flows);
    // CNPs after any mark: what the fluid model has.
    fluid.cnp_interval = microseconds(1);
    const double free = dcqcn_cycle_point(fluid, flows).mark / dcqcn_fixed_point(fluid, flows).mark;
    REQUIRE(free > 1.0);
    REQUIRE(free < 1.1);
    // 50 us in which marks mean nothing, and a timer of 55 us.
    fluid.cnp_interval = microseconds(50);
    const double dead = dcqcn_cycle_point(fluid, flows).mark / dcqcn_fixed_point(fluid, flows).mark;
    REQUIRE(dead > 1.3);
    REQUIRE(dead < 1.4);
  }
}

TEST_CASE("the shorter the timer against the CNP interval, the more marks flows take",
          "[transport]") {
  DcqcnFluid fluid = paper_fluid();
  const double usual = dcqcn_cycle_point(fluid, 4).mark;
  // Five timers of 10 us undo a cut before a mark counts again: only much larger alpha balances.
  fluid.rate_timer = microseconds(10);
  REQUIRE(dcqcn_cycle_point(fluid, 4).mark > 10 * usual);
  fluid.rate_timer = microseconds(300);
  REQUIRE(dcqcn_cycle_point(fluid, 4).mark < usual / 2);
  // Larger steps need more marks.
  fluid = paper_fluid();
  fluid.additive = Bandwidth(400'000'000);
  REQUIRE(dcqcn_cycle_point(fluid, 4).mark > usual);
}

}  // namespace trainyard
