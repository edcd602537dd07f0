// SPDX-License-Identifier: Apache-2.0
// Bytes are counted for one place of the pipeline and one group of each kind; the groups of a place
// are alike.
#include "parallelism/traffic/link_traffic.h"

#include <cstddef>
#include <map>

#include "parallelism/model/pipeline_stages.h"
#include "parallelism/model/rank_groups.h"
#include "parallelism/operators/rank_parameters.h"
#include "parallelism/walk/step_traffic.h"
#include "sim/check.h"

namespace trainyard {
namespace {

using PlaceCalls = std::map<RankGroupKind, RepeatedCalls>;

void add(const std::vector<GroupCall>& calls, double times, PlaceCalls& sum) {
  for (const GroupCall& call : calls) {
    const RepeatedCall one{.operation = call.operation,
                           .size = Bytes(call.elements * call.element_bytes)};
    sum[call.group][one] += call.times * times;
  }
}

// With two directions each of the two stages of a rank has half of the micro-batches.
double passes_of_stage(const ParallelPlan& plan) {
  return static_cast<double>(plan.micro_batches()) / plan.schedule->layout.directions;
}

void add_passes(const PassCalls& calls, const ParallelPlan& plan, PlaceCalls& sum) {
  add(calls.forward, passes_of_stage(plan), sum);
  add(calls.again, passes_of_stage(plan), sum);
  add(calls.backward, passes_of_stage(plan), sum);
}

// Returns the calls of one rank of the pipeline in a step.
PlaceCalls calls_of_place(const Model& model, const ParallelPlan& plan,
                          const SoftwareProfile& software, int place) {
  const PipelineShape shape = plan.pipeline_shape();
  const std::vector<PipelineStage> stages = pipeline_stages(plan, model);
  PlaceCalls sum;
  for (int chunk = 0; chunk < shape.chunks; ++chunk) {
    const auto stage = static_cast<std::size_t>(shape.stage_of(place, chunk));
    for_each_unit(stages[stage], [&](const ModelUnit& unit) {
      add_passes(unit_calls(model, plan, software, unit), plan, sum);
      if (plan.zero_stage == 3) {
        add_passes(sharded_calls(gathered_parameters(model, plan, unit), plan, software), plan,
                   sum);
      }
    });
  }
  const DataCalls calls = data_calls(place_parameters(model, stages, plan, place), plan, software);
  add(calls.reduce, 1.0, sum);
  add(calls.gather, 1.0, sum);
  return sum;
}

// Forward to the next place, gradients back; in a ring from the last place to the first as well.
void add_transfers(const Model& model, const ParallelPlan& plan, const SoftwareProfile& software,
                   const std::vector<int>& ranks, CallTraffic& counter) {
  const double bytes =
      plan.element_bytes *
      static_cast<double>(transfer_elements(model, plan, software.scatter_gather)) *
      static_cast<double>(plan.micro_batches());
  const StageLayout& layout = plan.schedule->layout;
  const int chunks = plan.chunks / layout.directions;
  for (std::size_t place = 0; place < ranks.size(); ++place) {
    const bool wraps = place + 1 == ranks.size();
    const int times = !wraps ? chunks : layout.is_ring ? chunks - 1 : 0;
    if (times > 0) {
      const int next = ranks[wraps ? 0 : place + 1];
      counter.add_message("pipeline", ranks[place], next, bytes * times);
      counter.add_message("pipeline", next, ranks[place], bytes * times);
    }
  }
}

}  // namespace

std::vector<LinkTraffic> step_link_traffic(const Cluster& cluster, const Model& model,
                                           const ParallelPlan& plan,
                                           const SoftwareProfile& software,
                                           const CallRuntime& runtime) {
  CHECK(plan.ranks() <= kMaxCountedRanks, "every group is routed");
  CallTraffic counter(cluster, runtime);
  std::vector<PlaceCalls> places;
  for (int place = 0; place < plan.pipeline; ++place) {
    places.push_back(calls_of_place(model, plan, software, place));
  }
  std::vector<int> place_of(as_index(plan.ranks()), -1);
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    if (place_of[as_index(rank)] >= 0) {
      continue;
    }
    const std::vector<int> pipeline = group_of(plan, RankGroupKind::Pipeline, rank);
    for (std::size_t place = 0; place < pipeline.size(); ++place) {
      place_of[static_cast<std::size_t>(pipeline[place])] = static_cast<int>(place);
    }
    if (pipeline.size() > 1) {
      add_transfers(model, plan, software, pipeline, counter);
      if (const auto call = ends_call(model, plan, software)) {
        PlaceCalls calls;
        add({*call}, 1.0, calls);
        counter.add_calls("data", group_of(plan, RankGroupKind::Ends, rank), calls[call->group]);
      }
    }
  }
  for (const RankGroupKind kind :
       {RankGroupKind::Tensor, RankGroupKind::Context, RankGroupKind::Gradient,
        RankGroupKind::Shard, RankGroupKind::Replica, RankGroupKind::Expert,
        RankGroupKind::ExpertTensor, RankGroupKind::ExpertGradient}) {
    if (group_size(plan, kind) < 2) {
      continue;
    }
    std::vector<bool> seen(place_of.size(), false);
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      const PlaceCalls& of_place = places[static_cast<std::size_t>(place_of[as_index(rank)])];
      const auto calls = of_place.find(kind);
      if (seen[as_index(rank)] || calls == of_place.end()) {
        continue;
      }
      const std::vector<int> group = group_of(plan, kind, rank);
      for (const int member : group) {
        seen[as_index(member)] = true;
      }
      counter.add_calls(purpose_of(kind), group, calls->second);
    }
  }
  return counter.take();
}

}  // namespace trainyard
