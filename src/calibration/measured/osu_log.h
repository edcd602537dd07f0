// SPDX-License-Identifier: Apache-2.0
// Reads what the collectives of the OSU Micro-Benchmarks print for buffers on GPUs:
//
//   # OSU MPI-CUDA Allreduce Latency Test v7.3
//   # Datatype: MPI_CHAR.
//   # Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
//   1048576               412.50            409.12            415.33         100
//
// They do not say how many ranks took part. Where every rank has a message of its own (allgather,
// alltoall, gather, scatter), the size is that message, and not the whole buffer as in nccl-tests.
#pragma once

#include <string>
#include <string_view>

#include "calibration/measured/measurement.h"

namespace trainyard {

// Returns whether the text holds the title of such a collective.
[[nodiscard]] bool is_osu_log(std::string_view text);

// Throws ConfigError naming `name` and the line, also for buffers in host memory.
[[nodiscard]] MeasuredTable parse_osu_log(std::string_view text, const std::string& name);

// Makes sizes that are those of one rank's message those of the whole buffer.
void take_whole_sizes(MeasuredTable& table, int ranks);

}  // namespace trainyard
