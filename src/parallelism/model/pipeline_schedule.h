// SPDX-License-Identifier: Apache-2.0
// Pipeline schedules: which pass each rank of a pipeline runs after which.
//
// The model is cut into stages; a rank holds one or two or more of them, its chunks. A forward pass
// of a micro-batch goes through the stages in rising order, a backward pass in falling order. The
// whole backward is the gradient of the inputs, which the stage before waits for, and that of the
// weights, for which nobody waits; schedules that split the two fill their idle time with the
// latter.
//
// A schedule is a row of one table. Each family of schedules defines its rows in a file of its own,
// and pipeline_schedule.cpp lists them; docs/guide/extending.md shows how to add one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units.h"

namespace trainyard {

// Which rank of a pipeline has which stages of the model; all of them count from 0.
struct StageLayout {
  // The stage that a chunk of a rank is.
  int (*stage_of)(int ranks, int rank, int chunk) = nullptr;
  // The rank where a micro-batch that goes in this direction meets the stage.
  int (*rank_of)(int ranks, int stage, int direction) = nullptr;
  // With 2, half of the micro-batches go through the ranks in falling order. Every stage is then on
  // two ranks, and a chunk is the stage of one direction.
  int directions = 1;
  // The last rank hands over to the first.
  bool is_ring = false;
};

// One chunk a rank: rank i has the stage i.
inline constexpr StageLayout kLineLayout{.stage_of = [](int, int rank, int) { return rank; },
                                         .rank_of = [](int, int stage, int) { return stage; }};

// Any number of chunks a rank: rank i has the stages i, p + i, 2 p + i and so on.
inline constexpr StageLayout kRingLayout{
    .stage_of = [](int ranks, int rank, int chunk) { return chunk * ranks + rank; },
    .rank_of = [](int ranks, int stage, int) { return stage % ranks; },
    .is_ring = true};

// Two chunks a rank: rank i has the stages i and 2 p - 1 - i; the last hands over to itself.
inline constexpr StageLayout kVLayout{
    .stage_of = [](int ranks, int rank,
                   int chunk) { return chunk == 0 ? rank : 2 * ranks - 1 - rank; },
    .rank_of = [](int ranks, int stage,
                  int) { return stage < ranks ? stage : 2 * ranks - 1 - stage; }};

// Two directions: rank i has the stages i and p - 1 - i of p.
inline constexpr StageLayout kTwoWayLayout{
    .stage_of = [](int ranks, int rank, int chunk) { return chunk == 0 ? rank : ranks - 1 - rank; },
    .rank_of = [](int ranks, int stage,
                  int direction) { return direction == 0 ? stage : ranks - 1 - stage; },
    .directions = 2};

enum class PassKind : std::uint8_t {
  Forward,
  Backward,        // The gradients of inputs and weights.
  InputGradient,   // The first part of a backward,
  WeightGradient,  // and the second.
};

struct Pass {
  PassKind kind = PassKind::Forward;
  int micro_batch = 0;  // With two directions, those of each are counted from 0.
  int chunk = 0;        // With two directions: the direction, 1 from the last rank to the first.
  // A forward that runs at once with the backward after it (DualPipe): both end together.
  bool with_next = false;

  bool operator==(const Pass&) const = default;
};

// The times of each stage of the model for one micro-batch.
struct StageTimes {
  SimTime forward;
  SimTime input_gradient;
  SimTime weight_gradient;
};

// The activations that a stage keeps of one micro-batch.
struct StageMemory {
  Bytes forward;  // From the forward to the gradient of the inputs.
  Bytes weight;   // From there to the gradient of the weights.
};

struct PipelineShape;

// A row of the table. Rows are constants, and a schedule is known by the address of its row.
struct PipelineSchedule {
  std::string_view name;          // As workload files and reports have it.
  std::optional<int> chunks = 1;  // Of a rank; nothing: any number.
  // The schedule that sources mean by this name where a rank has several chunks.
  const PipelineSchedule* with_chunks = nullptr;
  StageLayout layout = kLineLayout;
  // Some backwards run as two passes, so that gradients of inputs go on before those of weights.
  bool splits_backward = false;
  // The order of the passes depends on PipelineShape::stage_memory.
  bool fills_memory = false;
  // Returns the error, "expected ..., found ...", of a shape that lacks what else the schedule
  // needs; empty where it lacks nothing. Nothing: the schedule takes all numbers of ranks and
  // micro-batches.
  std::string (*error)(const PipelineShape& shape) = nullptr;
  // All passes of a rank in their order, for a shape that passed check().
  std::vector<Pass> (*passes)(const PipelineShape& shape, int rank) = nullptr;
};

// All rows, the usual schedule first.
[[nodiscard]] std::span<const PipelineSchedule* const> pipeline_schedules();
// Their names in the same order.
[[nodiscard]] std::vector<std::string_view> pipeline_schedule_names();

[[nodiscard]] inline std::string_view to_string(const PipelineSchedule* schedule) {
  return schedule->name;
}

// One forward, one backward, with a flush. PipeDream-Flush: Narayanan et al., arXiv 2006.09503;
// as in Megatron, arXiv 2104.04473.
extern const PipelineSchedule kOneForwardOneBackward;
// All forwards, then all backwards, the last first. Huang et al., arXiv 1811.06965.
extern const PipelineSchedule kGPipe;
// The first over several chunks a rank: rank i has the stages i, p + i, ... arXiv 2104.04473.
extern const PipelineSchedule kInterleaved;
// One chunk a rank and a split backward; as many activations as 1F1B. Qi et al., arXiv 2401.10241.
extern const PipelineSchedule kZeroBubbleH1;
// At most 2p - 1 activations, and no idle time between a rank's first and last pass for
// m >= 2p - 1.
extern const PipelineSchedule kZeroBubbleH2;
// One chunk a rank and a split backward, laid out so that each rank fills the memory of p
// micro-batches of the second stage, or of 2 p.
extern const PipelineSchedule kZeroBubble1p;
extern const PipelineSchedule kZeroBubble2p;
// Two chunks a rank in a V and a split backward. Section 6 there; the order is that of PyTorch's
// ScheduleZBVZeroBubble.
extern const PipelineSchedule kZeroBubbleV;
// Both directions at once, each with half of the micro-batches; a rank has the stages i and
// p - 1 - i. DeepSeek-V3, arXiv 2412.19437; deepseek-ai/DualPipe.
extern const PipelineSchedule kDualPipe;
// A V with half of the activations of 1F1B. With equal passes about half of its bubble.
extern const PipelineSchedule kVHalf;
// A V with a third of the activations of 1F1B. With equal passes two thirds of its bubble, 4 p - 5
// slots.
extern const PipelineSchedule kVMin;

struct PipelineShape {
  const PipelineSchedule* schedule = &kOneForwardOneBackward;
  int ranks = 1;
  int micro_batches = 1;  // The micro-batches of a step, both directions together.
  int chunks = 1;         // The chunks of a rank.
  // Stages in their order, for schedules that fill memory (scheduled_shape.h); empty: all are alike
  // and keep what a forward leaves until the gradient of the weights.
  std::vector<StageMemory> stage_memory = {};

  [[nodiscard]] int directions() const { return schedule->layout.directions; }
  // Returns the number of stages of the model.
  [[nodiscard]] int stages() const { return directions() == 1 ? ranks * chunks : ranks; }
  // Returns the stage of the model that this chunk of this rank is.
  [[nodiscard]] int stage_of(int rank, int chunk) const {
    return schedule->layout.stage_of(ranks, rank, chunk);
  }
  // The rank where the micro-batch of this pass meets the stage.
  [[nodiscard]] int rank_of(int stage, const Pass& pass) const {
    return schedule->layout.rank_of(ranks, stage, direction_of(pass));
  }
  // 0, or 1 for a micro-batch that goes from the last rank to the first.
  [[nodiscard]] int direction_of(const Pass& pass) const {
    return directions() == 1 ? 0 : pass.chunk;
  }
};

// Throws ConfigError that names the numbers where the schedule cannot be had.
void check(const PipelineShape& shape);

// All passes of the rank in their order, for a shape that passed check().
[[nodiscard]] inline std::vector<Pass> passes_of(const PipelineShape& shape, int rank) {
  return shape.schedule->passes(shape, rank);
}

}  // namespace trainyard
