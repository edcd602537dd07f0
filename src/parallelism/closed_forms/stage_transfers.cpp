// SPDX-License-Identifier: Apache-2.0
#include "parallelism/closed_forms/stage_transfers.h"

#include <cstddef>
#include <utility>

#include "parallelism/closed_forms/pipeline_timeline.h"
#include "parallelism/model/rank_groups.h"
#include "parallelism/walk/step_traffic.h"

namespace trainyard {

std::vector<SimTime> stage_transfers(const StepJob& job, GroupTimes& times) {
  const ParallelPlan& plan = job.plan;
  const int count = plan.pipeline;
  std::vector<SimTime> result(2 * static_cast<std::size_t>(count));
  if (count == 1) {
    return result;
  }
  const std::vector<int> ranks = widest_group(plan, RankGroupKind::Pipeline, job.server_of_rank);
  const Bytes size = transfer_size(job.model, plan, job.software.scatter_gather);
  const int pairs = plan.schedule->layout.is_ring ? count : count - 1;
  for (int one = 0; one < pairs; ++one) {
    const int next = (one + 1) % count;
    for (const auto& [from, to] : {std::pair(one, next), std::pair(next, one)}) {
      result[neighbour_index(from, to, count)] = times.transfer(
          ranks[static_cast<std::size_t>(from)], ranks[static_cast<std::size_t>(to)], size);
    }
  }
  return result;
}

}  // namespace trainyard
