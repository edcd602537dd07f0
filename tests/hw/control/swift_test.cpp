// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <cmath>

#include "hw/control/swift.h"
#include "support/transport_goldens.h"

namespace trainyard {
namespace {

using namespace literals;

SwiftSettings settings_of_swift(const GoldenParams& params) {
  SwiftSettings settings;
  settings.additive = params.number("ai");
  settings.beta = params.number("beta");
  settings.max_decrease = params.number("max_mdf");
  settings.base_target = microseconds(params.integer("base_target_us"));
  settings.hop_target = microseconds(params.integer("per_hop_us"));
  settings.flow_range = microseconds(params.integer("fs_range_us"));
  settings.flow_min = params.number("fs_min_cwnd");
  settings.flow_max = params.number("fs_max_cwnd");
  settings.first_window = params.number("cwnd_initial");
  settings.min_window = params.number("min_cwnd");
  settings.max_window = params.number("max_cwnd");
  return settings;
}

AckSignal ack_after(SimTime now, SimTime delay) {
  return {.now = now, .rtt = delay, .hops = 4};
}

}  // namespace

TEST_CASE("Swift follows the golden script ACK by ACK", "[transport]") {
  const ConfigNode section = transport_goldens("swift_scripted");
  const GoldenParams params(section);
  const SwiftSettings settings = settings_of_swift(params);
  Swift swift(settings);
  const GoldenTable table(section);
  REQUIRE(table.rows() == 27);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    INFO("row " << row);
    AckSignal ack = ack_after(microseconds(table.integer(row, "t_us")),
                              microseconds(table.integer(row, "delay_us")));
    ack.hops = static_cast<int>(params.integer("hops"));
    REQUIRE(swift.target(ack.hops).microseconds() ==
            Approx(table.number(row, "target_us")).margin(0.51e-6));
    REQUIRE(swift.can_decrease(ack.now, ack.rtt) == (table.text(row, "can_decrease") == "true"));
    swift.on_ack(ack, table.number(row, "acked_pkts"));
    REQUIRE(swift.window() == Approx(table.number(row, "cwnd_pkts")).margin(0.51e-6));
    REQUIRE(swift.pacing_delay().microseconds() ==
            Approx(table.number(row, "pacing_us")).margin(0.51e-6));
  }
}

TEST_CASE("a slow receiving host holds back a free fabric", "[transport]") {
  SwiftSettings settings;
  settings.host_target = 10_us;
  Swift swift(settings);
  AckSignal ack = ack_after(1_us, 105_us);
  ack.host_delay = 100_us;
  for (int i = 0; i < 40; ++i) {
    ack.now += 200_us;
    swift.on_ack(ack, 1.0);
  }
  REQUIRE(swift.window() < 1.0);
  ack.rtt = 6_us;
  ack.host_delay = 1_us;
  const double before = swift.window();
  swift.on_ack(ack, 1.0);
  REQUIRE(swift.window() > before);
}

TEST_CASE("losses halve the window once an RTT, timeouts in a row take it to the least",
          "[transport]") {
  const SwiftSettings settings;
  Swift swift(settings);
  swift.on_ack(ack_after(0_us, 20_us), 1.0);
  const double before = swift.window();
  swift.on_loss(10_us);
  REQUIRE(swift.window() == before / 2);
  swift.on_loss(20_us);
  REQUIRE(swift.window() == before / 2);
  swift.on_loss(30_us);
  REQUIRE(swift.window() == before / 4);
  for (int i = 0; i < settings.reset_timeouts; ++i) {
    swift.on_timeout(30_us);
  }
  REQUIRE(swift.window() == settings.min_window);
}

TEST_CASE("timeouts with an ACK or a loss that was found between them are not in a row",
          "[transport]") {
  const SwiftSettings settings;
  for (const bool is_ack : {true, false}) {
    Swift swift(settings);
    swift.on_ack(ack_after(0_us, 20_us), 1.0);
    for (int i = 0; i < 3 * settings.reset_timeouts; ++i) {
      swift.on_timeout(1_us);
      if (i % (settings.reset_timeouts - 1) == 0) {
        is_ack ? swift.on_any_ack() : swift.on_loss(1_us);
      }
    }
    REQUIRE(swift.window() > settings.min_window);
  }
}

}  // namespace trainyard
