// SPDX-License-Identifier: Apache-2.0
// A step of a convolutional network as a graph of operations: all layers forward, backward from the
// last one, and the sum of gradients over all GPUs in buckets, each as soon as it is full; then the
// optimizer.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "parallelism/graph/operation_graph.h"
#include "parallelism/operators/rank_parameters.h"
#include "parallelism/workload/convolutional_workload.h"
#include "parallelism/workload/gpu_rates.h"
#include "sim/units.h"

namespace trainyard {

// Gradients that are summed up at once.
struct GradientBucket {
  Bytes size;
  RankParameters parameters;
  std::size_t layer = 0;  // The layer whose backward pass fills it.
};

// DistributedDataParallel fills buckets from the last parameter on; one is closed when it has
// reached its limit, which of the first is at most kFirstBucket (compute_bucket_assignment_by_size
// of torch/csrc/distributed/c10d/reducer.cpp).
[[nodiscard]] std::vector<GradientBucket> gradient_buckets(const ConvolutionalModel& model,
                                                           Bytes limit,
                                                           const ParallelPlan& plan = {});

// The inputs that a step is lowered from; what it refers to must outlive it.
struct ConvolutionalJob {
  const ConvolutionalWorkload& workload;
  ComputeRates rates;  // convolutional_rates()
  int ranks = 1;
  // One rank stands for all, which do the same at the same time.
  bool is_folded = true;
};

[[nodiscard]] OperationGraph lower_convolutional(const ConvolutionalJob& job);

// Returns the name of a part of the step where it is one of a convolutional network; empty for
// those that it has not.
[[nodiscard]] std::string_view convolutional_part_name(StepPart part);

}  // namespace trainyard
