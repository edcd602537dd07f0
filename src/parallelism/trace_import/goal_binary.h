// SPDX-License-Identifier: Apache-2.0
// GOAL schedules in the binary form that txt2bin writes and LogGOPSim runs.
//
// All numbers are little-endian and stand one after the other without gaps
// (github.com/spcl/LogGOPSim, src/LogGOPSim/Parser.hpp):
//
//   u64 4223                            2342 once LogGOPSim ran it with --save-mem and destroyed it
//   u32 ranks, u8 cpus, u8 nics         the largest cpu and nic
//   of each rank: u64 begin, u64 end    where its part is, counted from byte 8
//   of each rank, its part:
//     u32 operations, u32 roots, u32 for each root: an operation that waits for none
//     of each operation:
//       u32 for how many it waits, u8 kind (1 send, 2 receive, 3 computation), u32 peer,
//       u64 bytes or nanoseconds, u32 tag, u8 cpu, u8 nic,
//       u32 how many wait for its end, u32 where their list begins,
//       u32 how many wait for its start, u32 where their list begins
//     u32 for each member of these lists
//
// Operations are numbered from 0 in each rank. The rules are those of the text form
// (goal_schedule.h); the errors name the rank and the operation.
#pragma once

#include "parallelism/trace_import/imported_workload.h"

namespace trainyard {

// Whether the file begins as one does, intact or destroyed.
[[nodiscard]] bool is_goal_binary(const ImportedFile& file);

// Throws ConfigError "FILE: rank R, operation N: ...". The graph is not checked yet.
[[nodiscard]] ImportedWorkload read_goal_binary(const ImportedFile& file, int gpus);

}  // namespace trainyard
