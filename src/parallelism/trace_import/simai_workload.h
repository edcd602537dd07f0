// SPDX-License-Identifier: Apache-2.0
// Text workloads of ASTRA-sim and SimAI: layers with the time and traffic of three passes.
//
//   HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 ... all_gpus: 16 ...
//   2                             the number of layers
//   mlp -1  5000 ALLREDUCE 1024  4000 NONE 0  4000 ALLREDUCE 2048  100
//
// A layer has a name, -1, and for each pass (forward, gradients of inputs, gradients of weights)
// nanoseconds, a collective and its bytes; then nanoseconds of the update of its weights. Layers
// run forward in their order, then backward; the collective of a pass is over before the next
// computation begins, except for gradients of weights: those run beside it, in their order.
// (github.com/astra-sim/astra-sim: astra-sim/workload/Workload.cc of version 1;
// github.com/aliyun/SimAI: astra-sim-alibabacloud/astra-sim/workload/Workload.cc,
// system/MockNcclGroup.cc for the groups.)
#pragma once

#include "parallelism/trace_import/imported_workload.h"

namespace trainyard {

// All ranks do the same, and one of them represents all if the target is folded. Throws ConfigError
// "FILE:LINE: ...". The graph is not checked yet.
[[nodiscard]] ImportedWorkload read_simai(const ImportedFile& file, const ImportedTarget& target);

}  // namespace trainyard
