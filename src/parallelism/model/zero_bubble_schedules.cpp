// SPDX-License-Identifier: Apache-2.0
// Schedules with a split backward of Qi et al., arXiv 2401.10241.
#include "parallelism/model/pipeline_schedule.h"

#include <algorithm>
#include <utility>

#include "parallelism/model/pass_list.h"

namespace trainyard {
namespace {

// `depth` forwards come first for each rank behind this one, and as many gradients of weights wait
// for each before it.
std::vector<Pass> zero_bubble_h(const PipelineShape& shape, int rank, int depth) {
  PassList list;
  for (int i = 0; i < std::min(shape.micro_batches, depth * (shape.ranks - 1 - rank)); ++i) {
    list.forward();
  }
  while (list.backwards() < shape.micro_batches) {
    if (list.forwards() < shape.micro_batches) {
      list.forward();
    }
    list.input_gradient();
    if (list.pending() > depth * rank) {
      list.weight_gradient();
    }
  }
  list.all_weight_gradients();
  return std::move(list).passes();
}

// The order is that of PyTorch's ScheduleZBVZeroBubble.
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
    list.weight_gradient(1);
  }
  while (list.forwards(1) < micro_batches || list.forwards(0) < micro_batches) {
    forward(0);
    backward(0);
    list.weight_gradient(0);
    forward(1);
    backward(1);
    list.weight_gradient(1);
  }
  for (int i = 0; i < rank; ++i) {
    backward(0);
    backward(1);
  }
  for (int i = 0; i < shape.ranks - rank; ++i) {
    backward(0);
    list.weight_gradient(0);
  }
  while (list.weight_gradient(1)) {
  }
  while (list.weight_gradient(0)) {
  }
  return std::move(list).passes();
}

}  // namespace

constinit const PipelineSchedule kZeroBubbleH1{
    .name = "zb-h1", .splits_backward = true, .passes = [](const PipelineShape& shape, int rank) {
      return zero_bubble_h(shape, rank, 1);
    }};

constinit const PipelineSchedule kZeroBubbleH2{
    .name = "zb-h2", .splits_backward = true, .passes = [](const PipelineShape& shape, int rank) {
      return zero_bubble_h(shape, rank, 2);
    }};

constinit const PipelineSchedule kZeroBubbleV{.name = "zb-v",
                                              .chunks = 2,
                                              .layout = kVLayout,
                                              .splits_backward = true,
                                              .passes = zero_bubble_v};

}  // namespace trainyard
