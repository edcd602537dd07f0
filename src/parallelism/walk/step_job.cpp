// SPDX-License-Identifier: Apache-2.0
#include "parallelism/walk/step_job.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "parallelism/model/rank_groups.h"
#include "parallelism/operators/time_arithmetic.h"
#include "sim/config_error.h"
#include "sim/ids.h"

namespace trainyard {
namespace {

// Share of a step for each doubling of the servers, beside what latency explains: weak scaling of
// the dgxc-benchmarking tables from 8 to 2,048 GPUs.
constexpr double kJitterOfDoubling = 0.004;

void keep_one_of_each(std::vector<int>& kinds) {
  std::ranges::sort(kinds);
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
}

}  // namespace

Overlap overlap_of(const OverlapChoice& choice, const SoftwareProfile& software) {
  return {.tensor = choice.tensor.value_or(software.overlap_tensor),
          .data = choice.data.value_or(software.overlap_data),
          .pipeline = choice.pipeline.value_or(software.overlap_pipeline),
          .expert = choice.expert.value_or(software.overlap_expert)};
}

SimTime jitter_of(SimTime step, std::span<const int> server_of_rank) {
  std::vector<int> servers(server_of_rank.begin(), server_of_rank.end());
  std::sort(servers.begin(), servers.end());
  const auto count = std::unique(servers.begin(), servers.end()) - servers.begin();
  return scaled(step, kJitterOfDoubling * std::log2(static_cast<double>(count)));
}

std::vector<std::vector<int>> kinds_by_place(const ParallelPlan& plan,
                                             std::span<const int> kind_of_rank) {
  std::vector<std::vector<int>> kinds(as_index(plan.pipeline));
  if (kind_of_rank.empty()) {
    kinds.assign(kinds.size(), {0});
    return kinds;
  }
  std::vector<bool> seen(kind_of_rank.size(), false);
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    if (seen[as_index(rank)]) {
      continue;
    }
    const std::vector<int> pipeline = group_of(plan, RankGroupKind::Pipeline, rank);
    for (std::size_t place = 0; place < pipeline.size(); ++place) {
      seen[as_index(pipeline[place])] = true;
      kinds[place].push_back(kind_of_rank[as_index(pipeline[place])]);
    }
  }
  for (std::vector<int>& of_place : kinds) {
    keep_one_of_each(of_place);
  }
  return kinds;
}

std::vector<std::vector<int>> kinds_by_stage(const ParallelPlan& plan,
                                             std::span<const int> kind_of_rank) {
  const PipelineShape shape = plan.pipeline_shape();
  const std::vector<std::vector<int>> by_place = kinds_by_place(plan, kind_of_rank);
  std::vector<std::vector<int>> kinds(as_index(shape.stages()));
  for (int place = 0; place < shape.ranks; ++place) {
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      std::vector<int>& of_stage = kinds[as_index(shape.stage_of(place, chunk))];
      const std::vector<int>& more = by_place[as_index(place)];
      of_stage.insert(of_stage.end(), more.begin(), more.end());
      keep_one_of_each(of_stage);
    }
  }
  return kinds;
}

StepJob on_kind(const StepJob& job, int kind) {
  return {.model = job.model,
          .plan = job.plan,
          .rates = job.kind_of_rank.empty() ? job.rates : job.kinds[as_index(kind)],
          .software = job.software,
          .overlap = job.overlap,
          .server_of_rank = job.server_of_rank,
          .domain_of_rank = job.domain_of_rank,
          .loads = job.loads,
          .host = job.host};
}

void check_modelled(const StepJob& job) {
  const ParallelPlan& plan = job.plan;
  const bool has_any_experts = has_experts(job.model);
  if (!job.rates.has_fused_attention && plan.context > 1) {
    throw ConfigError(fmt::format(
        "step: expected fused attention with context ranks, found {} of them and software {}",
        plan.context, job.software.name));
  }
  if (has_any_experts && plan.tensor > 1 && !plan.has_sequence_parallelism) {
    throw ConfigError(
        fmt::format("step: expected sequence_parallel for experts on {} tensor ranks, found none",
                    plan.tensor));
  }
  if (has_any_experts && plan.shard_group != 0) {
    throw ConfigError(fmt::format(
        "step: expected no shard_group with experts, which shard over all ranks with the same, "
        "found {}",
        plan.shard_group));
  }
  if (plan.servers) {
    throw ConfigError(
        "step: expected gradients summed by collectives, found plan.servers, which trainyard step "
        "--method graph --traffic shared runs alone");
  }
  if (plan.offload.any() && !job.host) {
    throw ConfigError("step: expected no plan.offload without a cluster's host memory, found it");
  }
}

}  // namespace trainyard
