// SPDX-License-Identifier: Apache-2.0
// The parts of NCCL's log, one function for each kind of line. Lines end in \n.
#pragma once

#include <string>

#include "nccl/tuning/call_plan.h"
#include "nccl/tuning/communicator.h"

namespace trainyard {

// "Pattern 4, crossNic 0, nChannels 12, bw 30.000000/30.000000, type NVL/PIX, sameChannels 1".
[[nodiscard]] std::string graph_line(const nccl::Graph& graph);

// "Channel 00/24 : 0 7 6 5 4 3 2 1", at most 127 characters as in NCCL, which then ends in "...".
[[nodiscard]] std::string ring_lines(const nccl::Communicator& communicator);

// "Trees [0] 1/8/-1->0->-1 [1] ...": by channel the ranks below a rank, itself, the one above.
[[nodiscard]] std::string tree_line(const nccl::Communicator& communicator, int rank);

// The table of latencies and bandwidths, three algorithms side by side.
[[nodiscard]] std::string tuning_lines(const nccl::TuningTable& table);

// "threadThresholds 8/8/64 | 64/8/64 | 512 | 512".
[[nodiscard]] std::string threshold_line(const nccl::TuningTable& table);

// "24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per
// peer".
[[nodiscard]] std::string channels_line(const nccl::Communicator& communicator);

// "AllReduce: 1048576 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..23}".
[[nodiscard]] std::string call_line(const nccl::CallPlan& plan);

}  // namespace trainyard
