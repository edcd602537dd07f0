// SPDX-License-Identifier: Apache-2.0
// DualPipe: both directions of a pipeline at once.
#include "parallelism/model/pipeline_schedule.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "parallelism/model/pass_list.h"

namespace trainyard {
namespace {

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

std::string odd_numbers(const PipelineShape& shape) {
  return shape.ranks % 2 == 0 && shape.micro_batches % 2 == 0 &&
                 shape.micro_batches >= 2 * shape.ranks
             ? ""
             : fmt::format(
                   "expected an even number of pipeline ranks and of micro-batches, at "
                   "least two a rank, found {} and {}",
                   shape.ranks, shape.micro_batches);
}

}  // namespace

constinit const PipelineSchedule kDualPipe{.name = "dualpipe",
                                           .chunks = 2,
                                           .layout = kTwoWayLayout,
                                           .splits_backward = true,
                                           .error = odd_numbers,
                                           .passes = dual_pipe};

}  // namespace trainyard
