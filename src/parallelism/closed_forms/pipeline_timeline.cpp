// SPDX-License-Identifier: Apache-2.0
#include "parallelism/closed_forms/pipeline_timeline.h"

#include <algorithm>
#include <optional>

#include "sim/check.h"
#include "sim/ids.h"

namespace trainyard {
namespace {

class Runner {
 public:
  Runner(const PipelineShape& shape, const PipelineTimes& times)
      : shape_(shape),
        times_(times),
        forwards_(as_index(shape.directions()) * as_index(shape.micro_batches) *
                  as_index(shape.stages())),
        gradients_(forwards_.size()) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      ranks_.push_back({.passes = passes_of(shape, rank)});
    }
  }

  PipelineTimeline run() {
    PipelineTimeline timeline;
    timeline.ranks.resize(ranks_.size());
    bool moved = true;
    while (moved) {
      moved = false;
      for (int rank = 0; rank < shape_.ranks; ++rank) {
        while (step(rank, timeline.ranks[static_cast<std::size_t>(rank)])) {
          moved = true;
        }
      }
    }
    for (const Rank& rank : ranks_) {
      CHECK(rank.next == rank.passes.size(), "a pipeline schedule waits for itself");
    }
    return timeline;
  }

 private:
  struct Rank {
    std::vector<Pass> passes;
    std::size_t next = 0;
    SimTime free = {};
  };
  // The input that a pass waits for: `none` if that has not run.
  struct Input {
    bool is_there = true;
    SimTime at = {};
    SimTime transfers = {};  // From other ranks.
  };

  // Runs the next pass of the rank, or the next pair, if its inputs are there.
  bool step(int index, std::vector<TimedPass>& done) {
    Rank& rank = ranks_[static_cast<std::size_t>(index)];
    if (rank.next == rank.passes.size()) {
      return false;
    }
    const std::size_t count = rank.passes[rank.next].with_next ? 2 : 1;
    Input input;
    SimTime duration;
    SimTime sends;
    for (std::size_t i = rank.next; i < rank.next + count; ++i) {
      const Pass& pass = rank.passes[i];
      add_input(index, pass, input);
      duration += duration_of(pass, shape_.stage_of(index, pass.chunk));
      sends += sends_of(index, pass);
    }
    if (!input.is_there) {
      return false;
    }
    const bool occupies = times_.transfers == PipelineTransfers::Synchronous;
    SimTime start = std::max(rank.free, input.at);
    if (occupies) {
      start += input.transfers;
    }
    const SimTime end = start + duration;
    rank.free = occupies ? end + sends : end;
    for (std::size_t i = rank.next; i < rank.next + count; ++i) {
      const Pass& pass = rank.passes[i];
      done.push_back({.pass = pass, .start = start, .end = end});
      const int stage = shape_.stage_of(index, pass.chunk);
      if (pass.kind == PassKind::Forward) {
        forwards_[at(pass, stage)] = end;
      } else if (pass.kind != PassKind::WeightGradient) {
        gradients_[at(pass, stage)] = end;
      }
    }
    rank.next += count;
    return true;
  }

  // Index of a result, by direction, micro-batch and stage.
  [[nodiscard]] std::size_t at(const Pass& pass, int stage) const {
    const int micro_batch = shape_.direction_of(pass) * shape_.micro_batches + pass.micro_batch;
    return as_index(micro_batch) * as_index(shape_.stages()) + as_index(stage);
  }

  void add_input(int rank, const Pass& pass, Input& input) {
    const int stage = shape_.stage_of(rank, pass.chunk);
    if (pass.kind == PassKind::Forward) {
      if (stage > 0) {
        add_input(rank, forwards_[at(pass, stage - 1)], shape_.rank_of(stage - 1, pass), input);
      }
    } else if (pass.kind == PassKind::WeightGradient) {
      add_input(rank, gradients_[at(pass, stage)], rank, input);
    } else {
      add_input(rank, forwards_[at(pass, stage)], rank, input);
      if (stage + 1 < shape_.stages()) {
        add_input(rank, gradients_[at(pass, stage + 1)], shape_.rank_of(stage + 1, pass), input);
      }
    }
  }

  void add_input(int rank, const std::optional<SimTime>& result, int producer, Input& input) const {
    if (!result) {
      input.is_there = false;
      return;
    }
    const SimTime transfer = transfer_time(producer, rank);
    const bool waits = times_.transfers == PipelineTransfers::Asynchronous;
    input.at = std::max(input.at, waits ? *result + transfer : *result);
    input.transfers += transfer;
  }

  // Returns the time of a transfer from another rank; nothing otherwise.
  [[nodiscard]] SimTime transfer_time(int from, int to) const {
    if (from == to || times_.transfer_to_neighbour.empty()) {
      return {};
    }
    return times_.transfer_to_neighbour[neighbour_index(from, to, shape_.ranks)];
  }

  // Returns the time of the message that follows the pass, if it goes to another rank.
  [[nodiscard]] SimTime sends_of(int rank, const Pass& pass) const {
    const int stage = shape_.stage_of(rank, pass.chunk);
    const int target = pass.kind == PassKind::Forward ? stage + 1 : stage - 1;
    if (pass.kind == PassKind::WeightGradient || target < 0 || target >= shape_.stages()) {
      return {};
    }
    return transfer_time(rank, shape_.rank_of(target, pass));
  }

  [[nodiscard]] SimTime duration_of(const Pass& pass, int stage) const {
    const StageTimes& times = times_.stages[static_cast<std::size_t>(stage)];
    switch (pass.kind) {
      case PassKind::Forward:
        return times.forward;
      case PassKind::Backward:
        return times.input_gradient + times.weight_gradient;
      case PassKind::InputGradient:
        return times.input_gradient;
      case PassKind::WeightGradient:
        return times.weight_gradient;
    }
    return {};
  }

  const PipelineShape& shape_;
  const PipelineTimes& times_;
  // The times when the results of passes are there.
  std::vector<std::optional<SimTime>> forwards_;
  std::vector<std::optional<SimTime>> gradients_;
  std::vector<Rank> ranks_;
};

}  // namespace

SimTime PipelineTimeline::makespan() const {
  SimTime end;
  for (const std::vector<TimedPass>& passes : ranks) {
    end = std::max(end, passes.back().end);
  }
  return end;
}

SimTime PipelineTimeline::busy(int rank) const {
  SimTime sum;
  for (const TimedPass& pass : ranks[static_cast<std::size_t>(rank)]) {
    // A pair counts once.
    sum += pass.pass.with_next ? SimTime() : pass.end - pass.start;
  }
  return sum;
}

std::size_t neighbour_index(int from, int to, int ranks) {
  // With two ranks, the other one is next to the first and before the second.
  const bool is_next = to == from + 1 || (to == 0 && from + 1 == ranks && ranks > 2);
  const bool is_before = to == from - 1 || (from == 0 && to + 1 == ranks);
  CHECK(is_next || is_before, "ranks that are no neighbours");
  return 2 * static_cast<std::size_t>(from) + (is_next ? 0 : 1);
}

PipelineTimeline run_pipeline(const PipelineShape& shape, const PipelineTimes& times) {
  CHECK(times.stages.size() == static_cast<std::size_t>(shape.stages()), "a time for each stage");
  CHECK(times.transfer_to_neighbour.empty() ||
            times.transfer_to_neighbour.size() == 2 * static_cast<std::size_t>(shape.ranks),
        "two times for each rank");
  return Runner(shape, times).run();
}

}  // namespace trainyard
