// SPDX-License-Identifier: Apache-2.0
// `trainyard transfer`: bandwidth and latency between devices, as p2pBandwidthLatencyTest,
// nvbandwidth and ib_write_bw measure them.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace trainyard {

int run_transfer(std::span<const std::string> arguments, std::ostream& out);

}  // namespace trainyard
