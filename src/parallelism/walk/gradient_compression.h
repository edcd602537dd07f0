// SPDX-License-Identifier: Apache-2.0
// Gradient compression of data ranks: which collectives are called instead of sums of whole
// gradients, what the kernels around them take, and what stays in memory for them. Of gradients of
// g bytes, where a rank has n of them and r ranks sum them up:
//
//   fp16, bf16   all-reduce of 2 n bytes; kernels read and write g + 6 bytes of each gradient
//                before it and g + 2 behind (default_hooks.py of pytorch/pytorch,
//                torch/distributed/algorithms/ddp_comm_hooks: cast, division, copy back).
//   powersgd     all-reduces of g times what no thin matrix stands for, of P and of Q (arXiv
//                1905.13727, algorithm 1; powerSGD_hook.py, with warm start and error feedback).
//   topk         all-gather of k = ratio n values with places of 4 bytes (arXiv 1712.01887, section
//                3.1), which a rank adds up for itself.
//
// Whether training converges as well is not modelled. docs/models/step.md has the kernels.
#pragma once

#include <cstdint>
#include <string>

#include "parallelism/model/parallel_plan.h"
#include "parallelism/operators/operator_time.h"
#include "parallelism/operators/rank_parameters.h"
#include "parallelism/workload/software_profile.h"
#include "sim/units.h"

namespace trainyard {

// Time of the kernels on the GPU: before the first call of a bucket, and behind.
struct CompressionTimes {
  SimTime before;
  SimTime behind;
};
[[nodiscard]] CompressionTimes compression_times(const RankParameters& parameters,
                                                 const ParallelPlan& plan,
                                                 const SoftwareProfile& software,
                                                 const OperatorTimes& operators);

// Returns what a rank keeps from step to step: errors of its own gradients, thin matrices; and what
// it gathers at once. Copies of one bucket are not counted.
[[nodiscard]] Bytes compression_buffers(const RankParameters& parameters, const ParallelPlan& plan,
                                        std::int64_t gradient_bytes);

// "PowerSGD of rank 4".
[[nodiscard]] std::string describe(const GradientCompression& compression);

}  // namespace trainyard
