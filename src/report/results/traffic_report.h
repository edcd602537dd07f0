// SPDX-License-Identifier: Apache-2.0
// The report of `trainyard traffic`, and its files of flows and counters.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "network/traffic/traffic_summary.h"
#include "report/formats/table.h"
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
  std::vector<std::string> notes;  // One line each.
};

// Text: tables of times, of slowdowns and goodput, of slowdowns by size where there are several,
// and of links. CSV: one line for each group, and one for all. JSON: everything.
[[nodiscard]] std::string render(const TrafficReport& report, const Topology& topology,
                                 Format format);

// The tables of the text form, each with its title.
[[nodiscard]] std::vector<std::pair<std::string, Table>> traffic_tables(const TrafficReport& report,
                                                                        const Topology& topology);

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
