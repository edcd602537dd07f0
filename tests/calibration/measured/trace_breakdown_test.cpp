// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/measured/trace_breakdown.h"

#include <cstdint>
#include <string>

#include "sim/config_error.h"
#include "sim/random.h"
#include "support/effort.h"

namespace trainyard {
namespace {

KinetoEvent kineto_event(KinetoKind kind, SimTime start, SimTime time) {
  KinetoEvent event;
  event.kind = kind;
  event.start = start;
  event.time = time;
  return event;
}

}  // namespace

TEST_CASE("a trace is computation, traffic that shows, and nothing", "[trace-breakdown]") {
  KinetoTrace trace;
  trace.events = {kineto_event(KinetoKind::Work, microseconds(10), microseconds(10)),
                  kineto_event(KinetoKind::Work, microseconds(12), microseconds(3)),
                  kineto_event(KinetoKind::Call, microseconds(15), microseconds(15)),
                  kineto_event(KinetoKind::Send, microseconds(28), microseconds(4)),
                  kineto_event(KinetoKind::Work, microseconds(40), microseconds(1))};
  const TraceBreakdown parts = breakdown_of(trace);
  REQUIRE(parts.time == microseconds(31));
  REQUIRE(parts.computation == microseconds(11));
  REQUIRE(parts.traffic.size() == 2);
  REQUIRE(parts.traffic[0].operation == "all_reduce");
  REQUIRE(parts.traffic[0].time == microseconds(10));
  REQUIRE(parts.traffic[1].time == microseconds(2));
  REQUIRE(parts.shown_traffic() == microseconds(12));
  REQUIRE(parts.idle == microseconds(8));
  REQUIRE_THROWS_AS(breakdown_of(KinetoTrace()), ConfigError);
}

TEST_CASE("parts of a trace add up to its time, whatever overlaps and however many steps",
          "[trace-breakdown]") {
  for (std::uint64_t seed = 1; seed <= cases(50); ++seed) {
    RandomStream random(seed, "trace");
    KinetoTrace trace;
    for (int index = 0; index < 30; ++index) {
      const auto kind = static_cast<KinetoKind>(random.below(4));
      const SimTime start = nanoseconds(static_cast<std::int64_t>(random.below(1000)));
      const SimTime time = nanoseconds(static_cast<std::int64_t>(random.below(100)));
      trace.events.push_back(kineto_event(kind, start, time));
    }
    const TraceBreakdown parts = breakdown_of(trace, 1 + static_cast<int>(seed % 7));
    REQUIRE(parts.idle >= SimTime());
    REQUIRE(parts.computation + parts.shown_traffic() + parts.idle == parts.time);
  }
}

}  // namespace trainyard
