// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/pipeline_schedule.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <deque>

#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Writes the passes of one rank.
class PassList {
 public:
  void forward(int chunk = 0) { add(PassKind::Forward, chunk, forwards_.at(at(chunk))++); }
  void backward(int chunk = 0) { add(PassKind::Backward, chunk, backwards_.at(at(chunk))++); }
  void input_gradient(int chunk = 0) {
    const int micro_batch = backwards_.at(at(chunk))++;
    add(PassKind::InputGradient, chunk, micro_batch);
    pending_.push_back(
        {.kind = PassKind::WeightGradient, .micro_batch = micro_batch, .chunk = chunk});
  }
  // The oldest that waits.
  void weight_gradient() {
    passes_.push_back(pending_.front());
    pending_.pop_front();
  }
  // The oldest of this chunk.
  void weight_gradient(int chunk) {
    const auto oldest = std::find_if(pending_.begin(), pending_.end(),
                                     [&](const Pass& pass) { return pass.chunk == chunk; });
    passes_.push_back(*oldest);
    pending_.erase(oldest);
  }
  void all_weight_gradients() {
    while (!pending_.empty()) {
      weight_gradient();
    }
  }
  void pair(int forward_chunk, int backward_chunk) {
    forward(forward_chunk);
    passes_.back().with_next = true;
    backward(backward_chunk);
  }
  // Out of the order of micro-batches.
  void add(PassKind kind, int chunk, int micro_batch) {
    passes_.push_back({.kind = kind, .micro_batch = micro_batch, .chunk = chunk});
  }

  [[nodiscard]] int forwards(int chunk = 0) const { return forwards_.at(at(chunk)); }
  [[nodiscard]] int backwards(int chunk = 0) const { return backwards_.at(at(chunk)); }
  [[nodiscard]] int pending() const { return static_cast<int>(pending_.size()); }
  [[nodiscard]] bool is_pending(int chunk) const {
    return std::any_of(pending_.begin(), pending_.end(),
                       [&](const Pass& pass) { return pass.chunk == chunk; });
  }
  [[nodiscard]] std::vector<Pass> passes() && { return std::move(passes_); }

 private:
  static std::size_t at(int chunk) { return static_cast<std::size_t>(chunk); }

  std::vector<Pass> passes_;
  std::deque<Pass> pending_;  // Weight gradients, in the order of their first parts.
  std::array<int, 2> forwards_{};
  std::array<int, 2> backwards_{};
};

std::vector<Pass> gpipe(const PipelineShape& shape) {
  PassList list;
  for (int i = 0; i < shape.micro_batches; ++i) {
    list.forward();
  }
  for (int i = shape.micro_batches - 1; i >= 0; --i) {
    list.add(PassKind::Backward, 0, i);
  }
  return std::move(list).passes();
}

std::vector<Pass> one_forward_one_backward(const PipelineShape& shape, int rank) {
  PassList list;
  for (int i = 0; i < std::min(shape.micro_batches, shape.ranks - 1 - rank); ++i) {
    list.forward();
  }
  while (list.backwards() < shape.micro_batches) {
    if (list.forwards() < shape.micro_batches) {
      list.forward();
    }
    list.backward();
  }
  return std::move(list).passes();
}

// Micro-batches go round in groups as large as the pipeline, each group through all chunks.
std::vector<Pass> interleaved(const PipelineShape& shape, int rank) {
  const int group = shape.ranks * shape.chunks;
  const int total = shape.micro_batches * shape.chunks;
  PassList list;
  const auto add = [&](PassKind kind, int index) {
    const int chunk = index % group / shape.ranks;
    const int micro_batch = index / group * shape.ranks + index % shape.ranks;
    list.add(kind, kind == PassKind::Forward ? chunk : shape.chunks - 1 - chunk, micro_batch);
  };
  int forwards = 0;
  const int warm_up =
      std::min(total, 2 * (shape.ranks - 1 - rank) + (shape.chunks - 1) * shape.ranks);
  while (forwards < warm_up) {
    add(PassKind::Forward, forwards++);
  }
  for (int backwards = 0; backwards < total; ++backwards) {
    if (forwards < total) {
      add(PassKind::Forward, forwards++);
    }
    add(PassKind::Backward, backwards);
  }
  return std::move(list).passes();
}

// `delay`: a rank lets its number times this many gradients of weights wait; `warm_up` forwards
// for each rank behind it.
std::vector<Pass> zero_bubble_h(const PipelineShape& shape, int rank, int warm_up, int delay) {
  PassList list;
  for (int i = 0; i < std::min(shape.micro_batches, warm_up * (shape.ranks - 1 - rank)); ++i) {
    list.forward();
  }
  while (list.backwards() < shape.micro_batches) {
    if (list.forwards() < shape.micro_batches) {
      list.forward();
    }
    list.input_gradient();
    if (list.pending() > delay * rank) {
      list.weight_gradient();
    }
  }
  list.all_weight_gradients();
  return std::move(list).passes();
}

std::vector<Pass> zero_bubble_v(const PipelineShape& shape, int rank) {
  const int micro_batches = shape.micro_batches;
  PassList list;
  const auto forward = [&](int chunk) {
    if (list.forwards(chunk) < micro_batches) {
      list.forward(chunk);
    }
  };
  const auto backward = [&](int chunk) {
    if (list.backwards(chunk) < micro_batches) {
      list.input_gradient(chunk);
    }
  };
  const auto weights = [&](int chunk) {
    if (list.is_pending(chunk)) {
      list.weight_gradient(chunk);
    }
  };
  for (int i = 0; i < 2 * (shape.ranks - rank) - 1; ++i) {
    forward(0);
  }
  for (int i = 0; i < rank; ++i) {
    forward(1);
    forward(0);
  }
  for (int i = 0; i < shape.ranks - rank; ++i) {
    forward(1);
    backward(1);
    weights(1);
  }
  while (list.forwards(1) < micro_batches || list.forwards(0) < micro_batches) {
    forward(0);
    backward(0);
    weights(0);
    forward(1);
    backward(1);
    weights(1);
  }
  for (int i = 0; i < rank; ++i) {
    backward(0);
    backward(1);
  }
  for (int i = 0; i < shape.ranks - rank; ++i) {
    backward(0);
    weights(0);
  }
  while (list.is_pending(1)) {
    weights(1);
  }
  while (list.is_pending(0)) {
    weights(0);
  }
  return std::move(list).passes();
}

std::vector<Pass> dual_pipe(const PipelineShape& shape, int rank) {
  const int half = shape.ranks / 2;
  const int depth = std::min(rank, shape.ranks - 1 - rank);  // From the nearer end.
  const int rest = half - depth - 1;                         // To the middle.
  const int own = rank < half ? 0 : 1;
  const int other = 1 - own;
  PassList list;
  for (int i = 0; i < 2 * rest; ++i) {
    list.forward(own);
  }
  for (int i = 0; i < depth + 1; ++i) {
    list.forward(own);
    list.forward(other);
  }
  for (int i = 0; i < rest; ++i) {
    list.input_gradient(other);
    list.weight_gradient();
    list.forward(other);
  }
  for (int i = 0; i < shape.micro_batches / 2 - shape.ranks + depth + 1; ++i) {
    if (i == 0 && rest == 0) {
      list.forward(own);
      list.backward(other);
    } else {
      list.pair(own, other);
    }
    list.pair(other, own);
  }
  for (int i = 0; i < rest; ++i) {
    list.backward(other);
    list.pair(other, own);
  }
  for (int i = 0; i < 2 * (depth + 1); ++i) {
    const int chunk = i % 2 == 0 ? other : own;
    if (i < depth + 1) {
      list.backward(chunk);
    } else {
      list.input_gradient(chunk);
    }
  }
  for (int i = 0; i < rest; ++i) {
    list.weight_gradient();
    list.input_gradient(own);
  }
  list.all_weight_gradients();
  return std::move(list).passes();
}

}  // namespace

std::string_view to_string(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::GPipe:
      return "gpipe";
    case PipelineSchedule::OneForwardOneBackward:
      return "1f1b";
    case PipelineSchedule::Interleaved:
      return "interleaved";
    case PipelineSchedule::ZeroBubbleH1:
      return "zb-h1";
    case PipelineSchedule::ZeroBubbleH2:
      return "zb-h2";
    case PipelineSchedule::ZeroBubbleV:
      return "zb-v";
    case PipelineSchedule::DualPipe:
      return "dualpipe";
  }
  return "";
}

int PipelineShape::stage_of(int rank, int chunk) const {
  switch (schedule) {
    case PipelineSchedule::ZeroBubbleV:
      return chunk == 0 ? rank : 2 * ranks - 1 - rank;
    case PipelineSchedule::DualPipe:
      return chunk == 0 ? rank : ranks - 1 - rank;
    default:
      return chunk * ranks + rank;
  }
}

void check(const PipelineShape& shape) {
  CHECK(shape.ranks > 0 && shape.micro_batches > 0 && shape.chunks > 0, "shapes are positive");
  const std::string_view name = to_string(shape.schedule);
  switch (shape.schedule) {
    case PipelineSchedule::Interleaved:
      if (shape.micro_batches % shape.ranks != 0) {
        throw ConfigError(fmt::format(
            "schedule {}: expected micro-batches that {} pipeline ranks divide, found {}", name,
            shape.ranks, shape.micro_batches));
      }
      return;
    case PipelineSchedule::DualPipe:
      if (shape.ranks % 2 != 0 || shape.micro_batches % 2 != 0 ||
          shape.micro_batches < 2 * shape.ranks) {
        throw ConfigError(
            fmt::format("schedule {}: expected an even number of pipeline ranks and "
                        "of micro-batches, at least two a rank, found {} and {}",
                        name, shape.ranks, shape.micro_batches));
      }
      [[fallthrough]];
    case PipelineSchedule::ZeroBubbleV:
      if (shape.chunks != 2) {
        throw ConfigError(
            fmt::format("schedule {}: expected two chunks a rank, found {}", name, shape.chunks));
      }
      return;
    default:
      if (shape.chunks != 1) {
        throw ConfigError(
            fmt::format("schedule {}: expected one chunk a rank, found {}", name, shape.chunks));
      }
  }
}

std::vector<Pass> passes_of(const PipelineShape& shape, int rank) {
  switch (shape.schedule) {
    case PipelineSchedule::GPipe:
      return gpipe(shape);
    case PipelineSchedule::OneForwardOneBackward:
      return one_forward_one_backward(shape, rank);
    case PipelineSchedule::Interleaved:
      return interleaved(shape, rank);
    case PipelineSchedule::ZeroBubbleH1:
      return zero_bubble_h(shape, rank, 1, 1);
    case PipelineSchedule::ZeroBubbleH2:
      return zero_bubble_h(shape, rank, 2, 2);
    case PipelineSchedule::ZeroBubbleV:
      return zero_bubble_v(shape, rank);
    case PipelineSchedule::DualPipe:
      return dual_pipe(shape, rank);
  }
  return {};
}

}  // namespace trainyard
