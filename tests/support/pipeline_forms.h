// SPDX-License-Identifier: Apache-2.0
// Activations that pipeline schedules hold, and their closed forms as papers have them.
#pragma once

#include <algorithm>
#include <optional>

#include "parallelism/model/pipeline_schedule.h"

namespace trainyard {

// The forward passes, of all chunks, whose activations the rank holds at most.
inline int max_activations(const PipelineShape& shape, int rank) {
  int held = 0;
  int max = 0;
  for (const Pass& pass : passes_of(shape, rank)) {
    held += pass.kind == PassKind::Forward ? 1 : pass.kind == PassKind::InputGradient ? 0 : -1;
    max = std::max(max, held);
  }
  return max;
}

// The idle time of each rank in a step of equal stages without transfers, for W <= F <= B and at
// least two micro-batches a rank, where the schedule has a form.
inline std::optional<SimTime> closed_bubble(const PipelineShape& shape, const StageTimes& times) {
  const SimTime whole = times.forward + times.input_gradient;
  if (shape.schedule == &kZeroBubbleH1) {  // Qi et al., arXiv 2401.10241, table 2.
    return (whole - times.weight_gradient) * (shape.ranks - 1);
  }
  // In the pass of a chunk, as in that of the whole rank where it has one. Huang et al.; Narayanan
  // et al., arXiv 2104.04473, sections 2.2.1 and 2.2.2.
  if (shape.schedule == &kGPipe || shape.schedule == &kOneForwardOneBackward ||
      shape.schedule == &kInterleaved) {
    return (whole + times.weight_gradient) * (shape.ranks - 1);
  }
  return std::nullopt;
}

// The most forward passes, all chunks together, whose activations a rank holds at once, where the
// schedule has a form.
inline std::optional<int> closed_activations(const PipelineShape& shape, int rank) {
  const int m = shape.micro_batches;
  const int p = shape.ranks;
  if (shape.schedule == &kGPipe) {
    return m;
  }
  if (shape.schedule == &kOneForwardOneBackward) {
    return std::min(m, p - rank);
  }
  if (shape.schedule == &kInterleaved) {
    return std::min(m * shape.chunks, 2 * (p - 1 - rank) + (shape.chunks - 1) * p + 1);
  }
  if (shape.schedule == &kZeroBubbleH1) {
    return std::min(m, p);
  }
  if (shape.schedule == &kZeroBubbleH2) {
    return std::min(m, 2 * p - 1);
  }
  return std::nullopt;
}

}  // namespace trainyard
