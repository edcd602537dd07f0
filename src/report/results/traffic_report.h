// SPDX-License-Identifier: Apache-2.0
// The report of `trainyard traffic`, and its files of flows and counters.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "network/traffic/traffic_summary.h"
#include "report/formats/document.h"
#include "topology/graph/topology.h"

namespace trainyard {

struct TrafficReport {
  std::string traffic;
  std::string cluster;
  std::string fidelity;
  std::string routing;
  std::uint64_t seed_of_routing = 0;
  std::uint64_t fingerprint = 0;
  TrafficSummary summary;
  std::vector<std::string> notes = {};  // One line each.
  RunInputs inputs = {};
  std::vector<std::string> estimates = {};  // See Document::estimates.
};

// Tables of times, of slowdowns and goodput, of slowdowns by size where there are several, and of
// links. CSV has a line for each group, and one for all.
[[nodiscard]] Document document_of(const TrafficReport& report, const Topology& topology);

// One line for each flow, in the order in which they began. With `counters`, those of their
// connections: as many as there are flows.
[[nodiscard]] std::string flows_csv(const Topology& topology, const TrafficSpec& spec,
                                    std::span<const FlowRecord> flows,
                                    std::span<const ConnectionCounters> counters);

// One line for each sample: of a queue its port, of a rate the ends of its connection.
[[nodiscard]] std::string samples_csv(const Topology& topology, const PacketSamples& samples);

// One line for each port.
[[nodiscard]] std::string counters_csv(const Topology& topology,
                                       std::span<const PortCounters> counters);

}  // namespace trainyard
