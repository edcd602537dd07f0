// SPDX-License-Identifier: Apache-2.0
// Flows from files of other tools, a line each.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "network/traffic/traffic_endpoints.h"
#include "network/traffic/traffic_spec.h"

namespace trainyard {

// Csv: a header that names the columns start_us, source, target and bytes, and possibly priority,
// in any order. Hpcc: as the ns-3 simulation of HPCC reads them, a first line with the number of
// flows, then as many lines of "source target priority port bytes start", the start in seconds,
// after which the file means nothing; there time begins with the first flow, because those files
// leave the first two seconds empty. Htsim: a connection matrix of htsim, lines "Nodes N" and
// "Connections N", then "source->target start PICOSECONDS size BYTES", with an id and a prio
// without effect.
enum class TraceFormat { Csv, Hpcc, Htsim };

// Sorted by start; lines of equal start stay in their order. A device is a name, or a number that
// counts `endpoints` from zero. Blank lines and lines that begin with # mean nothing. Throws
// ConfigError with file and line.
[[nodiscard]] std::vector<FlowStart> read_trace(const std::filesystem::path& file,
                                                TraceFormat format, const TrafficDevices& devices,
                                                std::span<const NodeId> endpoints);

}  // namespace trainyard
