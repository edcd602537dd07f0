// SPDX-License-Identifier: Apache-2.0
// --report of `trainyard traffic`.
#pragma once

#include <optional>

#include "network/contract/network.h"
#include "network/traffic/traffic_run.h"
#include "network/traffic/traffic_spec.h"
#include "report/html/html_report.h"
#include "report/results/traffic_report.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Completion times and slowdowns of flows, queues and rates where there are samples, links, tables.
[[nodiscard]] HtmlReport traffic_html(const Document& document, const TrafficReport& report,
                                      const Cluster& cluster, const TrafficSpec& spec,
                                      const TrafficRun& run,
                                      const std::optional<PacketSamples>& samples);

}  // namespace trainyard
