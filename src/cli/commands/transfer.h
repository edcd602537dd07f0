// SPDX-License-Identifier: Apache-2.0
// `trainyard transfer`: bandwidth and latency between devices, as p2pBandwidthLatencyTest,
// nvbandwidth and ib_write_bw measure them.
#pragma once

#include <boost/program_options.hpp>
#include <iosfwd>
#include <span>
#include <string>

namespace trainyard {

int run_transfer(std::span<const std::string> arguments, std::ostream& out);

[[nodiscard]] boost::program_options::options_description transfer_options();

}  // namespace trainyard
