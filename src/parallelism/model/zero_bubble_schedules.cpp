// SPDX-License-Identifier: Apache-2.0
// Schedules with one chunk a rank and a split backward.
#include "parallelism/model/pipeline_schedule.h"

#include <algorithm>
#include <utility>

#include "parallelism/model/pass_list.h"

namespace trainyard {
namespace {

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

}  // namespace

constinit const PipelineSchedule kZeroBubbleH1{
    .name = "zb-h1", .splits_backward = true, .passes = [](const PipelineShape& shape, int rank) {
      return zero_bubble_h(shape, rank, 1, 1);
    }};

constinit const PipelineSchedule kZeroBubbleH2{
    .name = "zb-h2", .splits_backward = true, .passes = [](const PipelineShape& shape, int rank) {
      return zero_bubble_h(shape, rank, 2, 2);
    }};

}  // namespace trainyard
