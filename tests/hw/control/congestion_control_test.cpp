// SPDX-License-Identifier: Apache-2.0
// Each algorithm behind the common type does what it does alone.
#include "support/catch.h"

#include <type_traits>

#include "hw/control/congestion_control.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr Bandwidth kLine = gigabits_per_second(100);

ControlSettings with(const ControlList::Rules& rules) {
  ControlSettings settings;
  settings.rules = rules;
  settings.line = kLine;
  return settings;
}

static_assert(std::is_trivially_copyable_v<SenderControl>);
static_assert(sizeof(SenderControl) <= 352);

}  // namespace

TEST_CASE("without control the rate is that of the line, and nothing limits what is in flight",
          "[transport]") {
  const ControlSettings settings = with(LineRateSettings());
  SenderControl control(settings);
  control.on_cnp(1_us);
  control.on_ack({.now = 1_us, .is_marked = true});
  control.on_timeout(1_us);
  REQUIRE(control.rate(1_us) == kLine);
  REQUIRE(control.window() == kUnlimitedWindow);
  REQUIRE(control.has_credit());
}

TEST_CASE("DCQCN behind the common type cuts for a CNP, recovers, and narrows its window",
          "[transport]") {
  DcqcnSettings dcqcn;
  dcqcn.line = kLine;
  dcqcn.additive = Bandwidth(40'000'000);
  dcqcn.window = Bytes(200'000);
  const ControlSettings settings = with(dcqcn);
  SenderControl control(settings);
  REQUIRE(control.window() == Bytes(200'000));
  control.on_cnp(1_us);
  REQUIRE(control.rate(1_us) == gigabits_per_second(50));
  REQUIRE(control.window() == Bytes(100'000));
  REQUIRE(control.rate(56_us) == gigabits_per_second(75));
  for (int i = 0; i < 20; ++i) {
    control.on_cnp(60_us);
  }
  REQUIRE(control.window() == settings.packet);
  control.on_sent(61_us, dcqcn.byte_counter);
  REQUIRE(control.as<DcqcnReaction>()->byte_count() == 1);
  REQUIRE(control.as<Hpcc>() == nullptr);
}

TEST_CASE("HPCC behind the common type reads the path that ACKs bring", "[transport]") {
  HpccSettings hpcc;
  hpcc.line = kLine;
  hpcc.base_rtt = 13_us;
  hpcc.additive = 80.0;
  const ControlSettings settings = with(hpcc);
  SenderControl control(settings);
  REQUIRE(control.window() == Bytes(162'500));
  IntHop hop{.rate = kLine, .time = 13_us, .sent_bytes = 0, .queue = Bytes(400'000)};
  control.on_ack({.acked = 1000, .next = 2000, .path = {&hop, 1}});
  hop.time = 26_us;
  hop.sent_bytes = 162'500;
  control.on_ack({.acked = 3000, .next = 4000, .path = {&hop, 1}});
  REQUIRE(control.window() < Bytes(60'000));
  REQUIRE(control.rate(26_us) < gigabits_per_second(40));
}

TEST_CASE("Swift behind the common type has a window in packets and a pace below one",
          "[transport]") {
  const ControlSettings settings = with(SwiftSettings{});
  SenderControl control(settings);
  REQUIRE(control.window() == settings.packet * 10);
  REQUIRE(control.rate(0_us) == kLine);
  for (int i = 1; i <= 5; ++i) {
    control.on_ack({.now = 1_ms * i, .rtt = 900_us, .size = settings.packet});
  }
  REQUIRE(control.window() == settings.packet);
  const double gap = transfer_time(settings.packet, control.rate(6_ms)).microseconds();
  REQUIRE(gap == Approx(900.0 / control.as<Swift>()->window()).epsilon(0.001));
  const Bandwidth before = control.rate(6_ms);
  control.on_loss(8_ms);
  REQUIRE(control.rate(8_ms) < before);
}

TEST_CASE("TIMELY behind the common type counts ACKs into segments", "[transport]") {
  TimelySettings timely;
  timely.line = kLine;
  timely.additive = Bandwidth(100'000'000);
  const ControlSettings settings = with(timely);
  SenderControl control(settings);
  for (int i = 0; i < 7; ++i) {
    control.on_ack({.rtt = 600_us + 100_us * i, .size = Bytes(4096)});
  }
  REQUIRE(control.rate(0_us) == kLine);  // One segment only: no gradient yet.
  control.on_ack({.rtt = 2000_us, .size = Bytes(4096)});
  REQUIRE(control.rate(0_us) < kLine);
}

TEST_CASE("DCTCP behind the common type heeds the echo of marks", "[transport]") {
  const ControlSettings settings = with(DctcpSettings{.first_window = Bytes(409'600)});
  SenderControl control(settings);
  control.on_ack({.acked = 4096, .next = 8192, .size = Bytes(4096), .is_marked = true});
  REQUIRE(control.window() == Bytes(204'800));
}

TEST_CASE("receiver credit behind the common type is spent by what is sent", "[transport]") {
  const ControlSettings settings =
      with(CreditSettings{.line = kLine, .window = mib(1), .speculative = Bytes(5000)});
  SenderControl control(settings);
  REQUIRE(!control.has_credit());
  control.add(Bytes(8356), Bytes(0));
  REQUIRE(control.has_credit());
  control.on_sent(1_us, Bytes(4178));
  REQUIRE(control.has_credit());
  control.on_sent(2_us, Bytes(4178));
  REQUIRE(!control.has_credit());
  control.on_credit(Bytes(3356));
  REQUIRE(!control.has_credit());
  control.add(Bytes(5000), Bytes(8356));
  control.on_credit(Bytes(5000));
  REQUIRE(control.has_credit());
}

}  // namespace trainyard
