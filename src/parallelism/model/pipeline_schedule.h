// SPDX-License-Identifier: Apache-2.0
// Pipeline schedules: which pass each rank of a pipeline runs after which.
//
// The model is cut into stages; a rank holds one or two or more of them, its chunks. A forward pass
// of a micro-batch goes through the stages in rising order, a backward pass in falling order. The
// whole backward is the gradient of the inputs, which the stage before waits for, and that of the
// weights, for which nobody waits; schedules that part the two fill their idle time with the
// latter.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace trainyard {

enum class PipelineSchedule : std::uint8_t {
  // All forwards, then all backwards, the last first. Huang et al., arXiv 1811.06965.
  GPipe,
  // One forward, one backward, with a flush. PipeDream-Flush: Narayanan et al., arXiv 2006.09503;
  // as in Megatron, arXiv 2104.04473.
  OneForwardOneBackward,
  // The same over several chunks a rank: rank i has the stages i, p + i, ... arXiv 2104.04473.
  Interleaved,
  // Backwards in two parts; as many activations as 1F1B. Qi et al., arXiv 2401.10241.
  ZeroBubbleH1,
  // At most 2p - 1 activations, and no idle time between a rank's first and last pass for
  // m >= 2p - 1. The same paper.
  ZeroBubbleH2,
  // Two chunks a rank in a V: the stages i and 2p - 1 - i. The same paper, section 6; the order is
  // that of PyTorch's ScheduleZBVZeroBubble.
  ZeroBubbleV,
  // Both directions at once, each with half of the micro-batches; a rank has the stages i and
  // p - 1 - i. DeepSeek-V3, arXiv 2412.19437; deepseek-ai/DualPipe.
  DualPipe,
};

// All of them, the usual one first.
inline constexpr std::array kPipelineSchedules{PipelineSchedule::OneForwardOneBackward,
                                               PipelineSchedule::GPipe,
                                               PipelineSchedule::Interleaved,
                                               PipelineSchedule::ZeroBubbleH1,
                                               PipelineSchedule::ZeroBubbleH2,
                                               PipelineSchedule::ZeroBubbleV,
                                               PipelineSchedule::DualPipe};

[[nodiscard]] std::string_view to_string(PipelineSchedule schedule);

enum class PassKind : std::uint8_t {
  Forward,
  Backward,        // Of inputs and weights.
  InputGradient,   // The first part of a backward,
  WeightGradient,  // and the second.
};

struct Pass {
  PassKind kind = PassKind::Forward;
  int micro_batch = 0;  // DualPipe counts those of each direction from 0.
  int chunk = 0;        // DualPipe: the direction, 1 from the last rank to the first.
  // A forward that runs at once with the backward after it (DualPipe): both end together.
  bool with_next = false;

  bool operator==(const Pass&) const = default;
};

struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::OneForwardOneBackward;
  int ranks = 1;
  int micro_batches = 1;  // Of a step, of both directions together.
  int chunks = 1;         // Of a rank; ZeroBubbleV and DualPipe have two.

  // Of the model.
  [[nodiscard]] int stages() const {
    return schedule == PipelineSchedule::DualPipe ? ranks : ranks * chunks;
  }
  // Of the model, that this chunk of this rank is.
  [[nodiscard]] int stage_of(int rank, int chunk) const;
};

// Throws ConfigError that names the numbers where the schedule cannot be had.
void check(const PipelineShape& shape);

// All passes of the rank in their order, for a shape that passed check().
[[nodiscard]] std::vector<Pass> passes_of(const PipelineShape& shape, int rank);

}  // namespace trainyard
