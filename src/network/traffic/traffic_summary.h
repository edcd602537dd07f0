// SPDX-License-Identifier: Apache-2.0
// Summarises a run of a traffic file: completion times, slowdowns, goodput, the fullest links.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "network/traffic/traffic_run.h"

namespace trainyard {

struct Distribution {
  double mean = 0.0;
  double p50 = 0.0;
  double p90 = 0.0;
  double p99 = 0.0;
  double p999 = 0.0;
  double max = 0.0;
};

// Flows whose size is at least `least` and below `below`.
struct SizeBin {
  Bytes min;
  std::optional<Bytes> below;  // The last bin has no end.
  std::size_t flows = 0;
  Distribution slowdown;
};

// Results of a group, or of all flows; times, slowdowns and rates of those that were complete.
struct TrafficStats {
  std::string name;
  std::size_t flows = 0;
  std::size_t unfinished = 0;
  Bytes bytes;       // Bytes of all flows.
  SimTime first;     // The first start.
  SimTime makespan;  // From there to the last end.
  std::optional<Distribution> fct_us;
  std::optional<Distribution> slowdown;
  // Goodput of each source while a flow of it was under way, in Gb/s.
  double goodput_min_gbps = 0.0;
  double goodput_mean_gbps = 0.0;
  double goodput_max_gbps = 0.0;
  // (sum x)^2 / (n sum x^2) of x = size / FCT (Jain, Chiu, Hawe, DEC-TR-301, 1984): 1 if all got
  // the same, 1/n if one got everything. Only of two flows or more that all have one size.
  std::optional<double> fairness;
  std::vector<SizeBin> bins;  // Decades of bytes that have flows.
};

struct LinkLoad {
  LinkId link;
  Bytes bytes;
  double utilisation = 0.0;  // Share of its rate, from the first start to the end of all flows.
};

struct TrafficSummary {
  std::vector<TrafficStats> groups;
  TrafficStats all;
  SimTime makespan;             // End of all flows, or that of the quiet network if it is later.
  std::vector<LinkLoad> links;  // The fullest first; equal ones by id.
};

[[nodiscard]] TrafficSummary summarise(const Topology& topology, const TrafficSpec& spec,
                                       const TrafficRun& run, std::size_t max_links);

}  // namespace trainyard
