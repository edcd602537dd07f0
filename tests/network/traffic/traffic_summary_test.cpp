// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "network/traffic/traffic_summary.h"

#include <optional>
#include <vector>

#include "sim/statistics.h"
#include "support/traffic.h"

namespace trainyard {
namespace {

using namespace literals;

// Two hosts and the switch between them; 8 Gb/s, so that a byte takes a nanosecond.
const Cluster& pair() {
  static const Cluster cluster =
      cluster_of(one_switch(2, fabric_link(gigabits_per_second(8), 0_us)));
  return cluster;
}

FlowRecord record(SimTime start, std::optional<SimTime> end, Bytes size, std::uint32_t host = 0,
                  std::uint32_t group = 0) {
  return {.start = start,
          .end = end,
          .alone = SimTime(1000 * size.count()),
          .size = size,
          .source = pair().gpus[host],
          .target = pair().gpus[1 - host],
          .group = group,
          .label = 0,
          .connection = {}};
}

TrafficSummary summary_of(std::vector<FlowRecord> flows, std::vector<LinkUse> use = {},
                          SimTime quiet = {}) {
  const TrafficSpec spec =
      traffic_of(pair(),
                 "groups:\n  - {name: a, kind: permutation, endpoints: gpus, size: 1 B}\n"
                 "  - {name: b, kind: permutation, endpoints: gpus, size: 1 B}\n");
  TrafficRun run;
  run.flows = std::move(flows);
  run.link_use = std::move(use);
  run.quiet_time = quiet;
  return summarise(pair().topology, spec, run, 2);
}

TEST_CASE("times and slowdowns have the percentiles of Samples", "[traffic]") {
  std::vector<FlowRecord> flows;
  Samples times;
  for (int index = 1; index <= 1001; ++index) {
    const SimTime end = SimTime(1'000'000) * (index * 7 % 1009);
    flows.push_back(record(0_us, end, Bytes(1000)));
    times.add(end.microseconds());
  }
  const TrafficSummary summary = summary_of(flows);
  const Distribution& fct = *summary.groups[0].fct_us;
  REQUIRE(fct.mean == Approx(times.mean()));
  REQUIRE(fct.p50 == times.percentile(50));
  REQUIRE(fct.p90 == Approx(times.percentile(90)));
  REQUIRE(fct.p99 == Approx(times.percentile(99)));
  REQUIRE(fct.p999 == Approx(times.percentile(99.9)));
  REQUIRE(fct.max == times.max());
  // A thousand bytes take a microsecond alone.
  REQUIRE(summary.groups[0].slowdown->max == Approx(fct.max));
  REQUIRE(summary.groups[1].flows == 0);
  REQUIRE(!summary.groups[1].fct_us);
  REQUIRE(summary.all.flows == 1001);
}

TEST_CASE("goodput of a source counts the time in which it had a flow under way", "[traffic]") {
  // Host 0: 2,000 bytes in 1 to 4 us with an overlap, then nothing, then 1,000 bytes in 1 us.
  const TrafficSummary summary =
      summary_of({record(1_us, 3_us, Bytes(1000)), record(1_us, 6_us, Bytes(500), 1),
                  record(2_us, 4_us, Bytes(1000)), record(9_us, 10_us, Bytes(1000))});
  REQUIRE(summary.all.goodput_max_gbps == Approx(8.0 * 3000 / 4000));
  REQUIRE(summary.all.goodput_min_gbps == Approx(8.0 * 500 / 5000));
  REQUIRE(summary.all.goodput_mean_gbps == Approx((6.0 + 0.8) / 2));
  REQUIRE(summary.all.makespan == 9_us);
  REQUIRE(summary.makespan == 9_us);
}

TEST_CASE("fairness is that of the rates of flows of one size", "[traffic]") {
  const auto fairness = [](std::vector<FlowRecord> flows) {
    return summary_of(std::move(flows)).all.fairness;
  };
  REQUIRE(fairness({record(0_us, 2_us, Bytes(9)), record(1_us, 3_us, Bytes(9))}) == Approx(1.0));
  // Rates 3 and 1: 16 / (2 x 10).
  REQUIRE(fairness({record(0_us, 1_us, Bytes(9)), record(0_us, 3_us, Bytes(9))}) == Approx(0.8));
  REQUIRE(!fairness({record(0_us, 1_us, Bytes(9)), record(0_us, 1_us, Bytes(8))}));
  REQUIRE(!fairness({record(0_us, 1_us, Bytes(9))}));
}

TEST_CASE("flows that were not complete are counted and take no part in times", "[traffic]") {
  const TrafficSummary summary =
      summary_of({record(0_us, 2_us, Bytes(1000)), record(0_us, {}, Bytes(1000), 1, 1)});
  REQUIRE(summary.all.flows == 2);
  REQUIRE(summary.all.unfinished == 1);
  REQUIRE(summary.all.bytes == Bytes(2000));
  REQUIRE(summary.all.slowdown->mean == Approx(2.0));
  REQUIRE(summary.groups[1].unfinished == 1);
  REQUIRE(!summary.groups[1].slowdown);
  REQUIRE(summary.groups[1].bins.empty());
}

TEST_CASE("slowdowns are told apart by decades of size", "[traffic]") {
  const TrafficSummary summary =
      summary_of({record(0_us, 20_us, Bytes(9'999)), record(0_us, 20_us, Bytes(10'000)),
                  record(0_us, 200_us, Bytes(99'999)), record(0_us, 1_s, Bytes(500'000'000))});
  const std::vector<SizeBin>& bins = summary.all.bins;
  REQUIRE(bins.size() == 3);
  REQUIRE(bins[0].min == Bytes(0));
  REQUIRE(bins[0].below == Bytes(10'000));
  REQUIRE(bins[0].flows == 1);
  REQUIRE(bins[1].flows == 2);
  REQUIRE(bins[1].slowdown.mean == Approx(2.0).epsilon(1e-4));
  REQUIRE(bins[2].min == Bytes(100'000'000));
  REQUIRE(!bins[2].below);
}

TEST_CASE("the fullest links come first, and a later quiet time is the makespan", "[traffic]") {
  const std::vector<LinkUse> use{{.link = LinkId(0), .bytes = Bytes(100)},
                                 {.link = LinkId(1), .bytes = Bytes(1000)},
                                 {.link = LinkId(3), .bytes = Bytes(1000)}};
  const TrafficSummary summary = summary_of({record(2_us, 3_us, Bytes(10))}, use, 4_us);
  REQUIRE(summary.all.makespan == 1_us);
  REQUIRE(summary.makespan == 2_us);
  REQUIRE(summary.links.size() == 2);
  REQUIRE(summary.links[0].link == LinkId(1));
  REQUIRE(summary.links[1].link == LinkId(3));
  REQUIRE(summary.links[0].utilisation == Approx(0.5));
}

}  // namespace
}  // namespace trainyard
