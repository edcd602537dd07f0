// SPDX-License-Identifier: Apache-2.0
// GOAL schedules: what each rank computes, sends and receives, and what waits for what.
//
// The text form that LogGOPSim and ATLAHS take (github.com/spcl/LogGOPSim,
// src/LogGOPSim/txt2bin.re):
//
//   num_ranks 2
//   rank 0 {
//     l1: calc 1000 cpu 0           nanoseconds
//     l2: send 64b to 1 tag 7       also: cpu N, nic N
//     l2 requires l1                after its end; irequires: after its start
//   }
//
// Computation of one cpu of a rank runs one at a time, as it becomes ready. Messages are eager
// (Handover::Eager), and the n-th send from a to b with a tag goes to the n-th receive of b from a
// with it, in the order of the file.
#pragma once

#include "parallelism/trace_import/imported_workload.h"

namespace trainyard {

// Throws ConfigError "FILE:LINE: ...". The graph is not checked yet.
[[nodiscard]] ImportedWorkload read_goal(const ImportedFile& file, int gpus);

}  // namespace trainyard
