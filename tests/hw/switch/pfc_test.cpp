// SPDX-License-Identifier: Apache-2.0
// Headroom against the golden tables; pauses, refreshes and the watchdog by their rules.
#include "support/catch.h"

#include "hw/switch/pfc.h"
#include "support/transport_goldens.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr Bandwidth kHundred = gigabits_per_second(100);

Bandwidth rate_of(const GoldenTable& table, std::size_t row) {
  return gigabits_per_second(table.integer(row, "Gbps"));
}

}  // namespace

TEST_CASE("headroom is the golden one at every speed, length and MTU", "[transport]") {
  const ConfigNode section = transport_goldens("pfc_headroom");
  const GoldenTable table(section);
  const SimTime metre(golden_integer(section.required("fibre_ps_per_m").as_string()));
  REQUIRE(table.rows() == 60);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const HeadroomTerms terms{.rate = rate_of(table, row),
                              .delay = metre * table.integer(row, "metres"),
                              .mtu = Bytes(table.integer(row, "mtu"))};
    REQUIRE(pfc_headroom(terms).count() == table.integer(row, "headroom_bytes"));
    REQUIRE((pfc_headroom(terms).count() + 255) / 256 == table.integer(row, "cells_256"));
    REQUIRE(reaction_quanta(terms.rate) * kQuantumBytes ==
            table.integer(row, "peer_response_bytes"));
  }
}

TEST_CASE("the pipeline beside the cable counts as cable", "[transport]") {
  const HeadroomTerms cable{.rate = kHundred, .delay = 500_ns, .mtu = Bytes(4096)};
  const HeadroomTerms fec{
      .rate = kHundred, .delay = 400_ns, .mtu = Bytes(4096), .pipeline = 100_ns};
  REQUIRE(pfc_headroom(cable) == pfc_headroom(fec));
}

TEST_CASE("headroom by the rules of SONiC and of the ns-3 model is the golden one", "[transport]") {
  const ConfigNode section = transport_goldens("pfc_headroom");
  const GoldenTable sonic(section.required("sonic_spectrum_variant"));
  for (std::size_t row = 0; row < sonic.rows(); ++row) {
    REQUIRE(sonic_headroom(rate_of(sonic, row), sonic.number(row, "metres")).count() ==
            sonic.integer(row, "xoff_bytes"));
  }
  const GoldenTable ns3(section.required("hpcc_ns3_variant"));
  for (std::size_t row = 0; row < ns3.rows(); ++row) {
    REQUIRE(headroom_by(HeadroomRule::Ns3, {.rate = rate_of(ns3, row),
                                            .delay = nanoseconds(ns3.integer(row, "link_delay_ns")),
                                            .mtu = {}})
                .count() == ns3.integer(row, "headroom_bytes"));
  }
}

TEST_CASE("a port reacts to a pause within its quanta of 512 bits", "[transport]") {
  REQUIRE(reaction_time(gigabits_per_second(10)) == picoseconds(67 * 51'200));
  REQUIRE(reaction_time(kHundred) == picoseconds(394 * 5'120));
}

TEST_CASE("speeds between two of the table react like the faster one", "[transport]") {
  REQUIRE(reaction_quanta(gigabits_per_second(10)) == 67);
  REQUIRE(reaction_quanta(gigabits_per_second(56)) == 394);
  REQUIRE(reaction_quanta(gigabits_per_second(1600)) == 905);
}

TEST_CASE("the watchdog declares a storm after its detection time and ends it after quiet",
          "[transport]") {
  const WatchdogSettings settings{.detection = 400_ms, .restoration = 200_ms, .poll = 200_ms};
  const PauseWatchdog::Sample stuck{.has_packets = true, .sent = false, .paused = 200_ms};
  const PauseWatchdog::Sample moving{.has_packets = true, .sent = true, .paused = 190_ms};
  const PauseWatchdog::Sample quiet{};
  using Event = PauseWatchdog::Event;
  PauseWatchdog watchdog;
  REQUIRE(watchdog.poll(settings, stuck) == Event::Nothing);
  REQUIRE(watchdog.poll(settings, moving) == Event::Nothing);  // Begins anew.
  REQUIRE(watchdog.poll(settings, stuck) == Event::Nothing);
  REQUIRE(watchdog.poll(settings, stuck) == Event::Storm);
  REQUIRE(watchdog.in_storm());
  REQUIRE(watchdog.poll(settings, stuck) == Event::Nothing);
  REQUIRE(watchdog.poll(settings, quiet) == Event::Restored);
  REQUIRE(!watchdog.in_storm());
}

TEST_CASE("a queue that was never paused is no storm, whatever it waits for", "[transport]") {
  PauseWatchdog watchdog;
  const WatchdogSettings settings;
  const PauseWatchdog::Sample waiting{.has_packets = true, .sent = false, .paused = SimTime()};
  for (int i = 0; i < 10; ++i) {
    REQUIRE(watchdog.poll(settings, waiting) == PauseWatchdog::Event::Nothing);
  }
}

}  // namespace trainyard
