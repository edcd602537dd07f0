// SPDX-License-Identifier: Apache-2.0
// Two chunks a rank in a V and a split backward.
#include "parallelism/model/pipeline_schedule.h"

#include <utility>

#include "parallelism/model/pass_list.h"

namespace trainyard {
namespace {

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

}  // namespace

constinit const PipelineSchedule kZeroBubbleV{.name = "zb-v",
                                              .chunks = 2,
                                              .layout = kVLayout,
                                              .splits_backward = true,
                                              .passes = zero_bubble_v};

}  // namespace trainyard
