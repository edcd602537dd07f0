// SPDX-License-Identifier: Apache-2.0
// Chooses what NCCL does with one call: the cheapest algorithm and protocol of its table, how many
// channels and threads, and which bytes each channel works on in which chunks (NVIDIA/nccl,
// src/enqueue.cc: topoGetAlgoInfo, scheduleCollTasksToPlan, calcCollChunking).
#pragma once

#include "nccl/tuning/call_plan.h"
#include "nccl/tuning/communicator.h"
#include "nccl/types/environment.h"
#include "nccl/types/types.h"
#include "sim/units.h"

namespace trainyard::nccl {

class TunerTable;

struct CallOptions {
  // Calls of one group on each channel, one behind the other (ncclGroupStart).
  int operations = 1;
  // NVSwitch can add up this data type with this operation.
  bool nvls_reducible = true;
  // True if ReduceScatter may use PAT: not with an average or a scaled sum.
  bool pat_reducible = true;
  // FP8 loses too much precision in rings over more than eight ranks.
  bool fp8 = false;
  const TunerTable* tuner = nullptr;  // Overrides the choice where one of its rows fits.
};

// `bytes` is count * size of an element; of AllGather and ReduceScatter what one rank gives or
// gets. Zero bytes make a plan without channels. Throws ConfigError where variables leave no
// algorithm, or no algorithm with a protocol.
[[nodiscard]] CallPlan plan_call(const Communicator& communicator, const Environment& environment,
                                 Function function, Bytes bytes, const CallOptions& options = {});

// Payload of all ranks together, which is what NCCL's model compares by: `bytes`, times the ranks
// for AllGather and ReduceScatter.
[[nodiscard]] Bytes total_bytes(Function function, Bytes bytes, int ranks);
// The other way round: the bytes of a call from the size in the sense of nccl-tests.
[[nodiscard]] Bytes call_bytes(Function function, Bytes size, int ranks);

}  // namespace trainyard::nccl
