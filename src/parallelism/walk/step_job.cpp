// SPDX-License-Identifier: Apache-2.0
#include "parallelism/walk/step_job.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "parallelism/operators/time_arithmetic.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Share of a step for each doubling of the servers, beside what latency explains: weak scaling of
// the dgxc-benchmarking tables from 8 to 2,048 GPUs.
constexpr double kJitterOfDoubling = 0.004;

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
