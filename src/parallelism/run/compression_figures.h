// SPDX-License-Identifier: Apache-2.0
// The figures of gradient compression in a step, for people: what a rank sends instead of what, and
// what that costs.
#pragma once

#include <optional>
#include <string>

#include "parallelism/model/parallel_plan.h"
#include "parallelism/operators/rank_parameters.h"
#include "parallelism/workload/gpu_rates.h"
#include "parallelism/workload/software_profile.h"
#include "sim/units.h"

namespace trainyard {

// All of one rank and step.
struct CompressionFigures {
  GradientCompression compression = {};
  Bytes sent = {};          // Bytes that leave the rank for the sums of gradients, as rings send.
  Bytes uncompressed = {};  // The same without compression.
  SimTime kernels = {};     // Time of its kernels on the GPU.
  Bytes buffers = {};       // Memory of what it keeps and gathers.

  [[nodiscard]] std::string note() const;
};

// Returns those of a rank with these parameters; nothing where nothing is compressed
// or sent.
[[nodiscard]] std::optional<CompressionFigures> compression_figures(
    const RankParameters& parameters, const ParallelPlan& plan, const SoftwareProfile& software,
    const ComputeRates& rates);

}  // namespace trainyard
