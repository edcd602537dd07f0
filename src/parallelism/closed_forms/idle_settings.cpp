// SPDX-License-Identifier: Apache-2.0
#include "parallelism/closed_forms/idle_settings.h"

#include <utility>

#include "parallelism/walk/step_traffic.h"

namespace trainyard {

std::vector<std::string> idle_settings(const Workload& workload, const ParallelPlan& plan,
                                       const SoftwareProfile& software) {
  std::vector<std::string> idle;
  const auto add = [&](bool is_idle, std::string text) {
    if (is_idle) {
      idle.push_back(std::move(text));
    }
  };
  const ParallelPlan usual;
  const bool is_routed = !workload.routing.is_even();
  add(is_routed && !has_experts(workload.model), "routing: the model has no experts");
  add(is_routed && has_experts(workload.model) && plan.expert == 1 && !workload.routing.capacity,
      "routing: all experts are on every rank");
  add(plan.pipeline == 1 && plan.schedule != usual.schedule,
      "plan.schedule: the pipeline has one stage");
  add(plan.pipeline == 1 && plan.chunks > 1, "plan.chunks: the pipeline has one stage");
  add(workload.plan.has_sequence_parallelism && plan.tensor == 1,
      "plan.sequence_parallel: there is one tensor rank");
  add(plan.context == 1 && plan.context_kind != usual.context_kind,
      "plan.context_kind: there is one context rank");
  const bool shards_experts = has_experts(workload.model) && plan.expert_gradient_ranks() > 1;
  add(plan.zero_stage > 0 && plan.gradient_ranks() == 1 && !shards_experts,
      "plan.zero_stage: there is one data rank to shard over");
  const bool sums_gradients = plan.gradient_ranks() > 1 || shards_experts;
  add(plan.compression && !sums_gradients, "plan.gradient_compression: there is one data rank");
  add(plan.compression && sums_gradients && !compression_of(plan, software),
      "plan.gradient_compression: gradients have 16 bits without it");
  const OverlapChoice& overlap = workload.overlap;
  add(overlap.tensor && plan.tensor == 1, "overlap.tensor: there is one tensor rank");
  add(overlap.data && plan.gradient_ranks() == 1, "overlap.data: there is one data rank");
  add(plan.bucket && plan.gradient_ranks() == 1 && !shards_experts,
      "overlap.bucket: there is one data rank");
  add(plan.bucket && reduces_units(plan, software),
      "overlap.bucket: gradients that are sharded go unit by unit");
  add(overlap.pipeline && plan.pipeline == 1, "overlap.pipeline: the pipeline has one stage");
  add(overlap.expert && plan.expert == 1, "overlap.expert: no tokens go to other ranks");
  return idle;
}

}  // namespace trainyard
