// SPDX-License-Identifier: Apache-2.0
// A step of a convolutional network on a cluster, data parallel on all GPUs: rank r is the GPU r.
#pragma once

#include <cstddef>
#include <optional>

#include "parallelism/run/compression_figures.h"
#include "parallelism/run/step_run.h"
#include "parallelism/workload/convolutional_workload.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct ConvolutionalRun : LoweredRun {
  std::size_t buckets = 0;  // Sums of gradients in a step.
  std::optional<CompressionFigures> compression = {};
};

// `tables` as of StepMethod::Graph. Throws ConfigError, one line, for what does not fit and for
// what is not modelled.
[[nodiscard]] ConvolutionalRun run_convolutional(const Cluster& cluster,
                                                 const ConvolutionalWorkload& workload,
                                                 const StepTables& tables);

}  // namespace trainyard
