// SPDX-License-Identifier: Apache-2.0
// Seeded jobs for searches: small transformers, dense and with experts, on a few servers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "parallelism/search/plan_search.h"
#include "parallelism/search/plan_space.h"
#include "parallelism/workload/workload.h"
#include "sim/random.h"
#include "support/step_rates.h"

namespace trainyard {

struct SearchCase {
  Workload workload;
  SoftwareProfile software;
  ComputeRates rates;
  Overlap overlap;
  std::vector<int> server_of_rank;
  Bytes memory;
  double traffic_rate = 1e9;  // Of a rank's collectives, B/s.

  [[nodiscard]] int gpus() const { return static_cast<int>(server_of_rank.size()); }
  [[nodiscard]] SearchTask task() const {
    return {.model = workload.model,
            .rates = rates,
            .software = software,
            .overlap = overlap,
            .server_of_rank = server_of_rank,
            .loads = workload.routing,
            .memory = memory};
  }
};

inline Model drawn_model(RandomStream& random) {
  Model model;
  model.name = "drawn";
  model.title = "drawn";
  const auto heads = static_cast<std::int64_t>(4U << random.below(3));
  model.hidden = heads * 64;
  model.vocabulary = static_cast<std::int64_t>(1000 + random.below(60'000));
  model.has_tied_embeddings = random.below(3) == 0;
  const bool has_experts = random.below(3) == 0;
  const auto count = 2 + random.below(7);
  for (std::uint64_t index = 0; index < count; ++index) {
    ModelLayer layer;
    layer.attention.grouped =
        GroupedAttention{.heads = heads, .kv_heads = heads / 2, .head_size = 64};
    const FeedForward inner{.size = 4 * model.hidden, .is_gated = random.below(2) == 0};
    if (has_experts && index > 0) {
      layer.experts = Experts{.count = 8, .active = 2, .expert = inner};
    } else {
      layer.feed_forward = inner;
    }
    model.layers.push_back(layer);
  }
  return model;
}

// Some of them with what encoders have at their ends, or with modulation.
inline void draw_ends(std::uint64_t seed, Model& model) {
  RandomStream random(seed, "ends");
  if (random.below(3) == 0) {
    model.token_types = 2;
    model.is_post_norm = true;
    model.head = {.has_transform = true, .has_bias = true, .has_pooler = true, .classes = 2};
  } else if (random.below(3) == 0) {
    model.modulation = Modulation{.frequencies = 256, .labels = 100};
  }
}

inline SearchCase drawn_search(std::uint64_t seed) {
  RandomStream random(seed, "search");
  const std::vector<std::string> names{"megatron-core", "megatron-unfused", "nemo",
                                       "pytorch-native", "megatron-deepep"};
  SearchCase drawn;
  drawn.software = shipped_software(names[random.below(names.size())]);
  drawn.workload.model = drawn_model(random);
  draw_ends(seed, drawn.workload.model);
  ParallelPlan& plan = drawn.workload.plan;
  plan.sequence = static_cast<std::int64_t>(256U << random.below(3));
  plan.global_batch = static_cast<std::int64_t>(8U << random.below(3));
  plan.context_kind =
      random.below(2) == 0 ? ContextParallelism::Ring : ContextParallelism::AllToAll;
  const bool is_unfused = drawn.software.attention == "unfused";
  drawn.rates = shipped_compute(is_unfused ? "A100-SXM-80GB" : "H100-SXM", drawn.software.name);
  const auto flip = [&] { return random.below(2) == 0; };
  drawn.overlap.tensor = flip();
  drawn.overlap.data = flip();
  drawn.overlap.pipeline = flip();
  drawn.overlap.expert = flip();
  const auto gpus = static_cast<int>(4U << random.below(2));
  for (int rank = 0; rank < gpus; ++rank) {
    drawn.server_of_rank.push_back(rank / 4);
  }
  drawn.memory = mib(static_cast<std::int64_t>(2400 + random.below(4000)));
  drawn.traffic_rate = 1e9 * static_cast<double>(1U << random.below(8));
  return drawn;
}

// Few values of each axis; over many seeds all of them.
inline PlanAxes drawn_axes(const SearchCase& drawn, std::uint64_t seed) {
  RandomStream random(seed, "axes");
  PlanAxes axes = default_axes(drawn.workload, drawn.gpus(), 4);
  const std::span<const PipelineSchedule* const> schedules = pipeline_schedules();
  const auto first = random.below(schedules.size());
  axes.schedules = {schedules[first], schedules[(first + 2) % schedules.size()]};
  axes.context = {1, 2};
  axes.chunks = {2};
  axes.micro_batch = {1, 2};
  axes.recompute = {Recompute::None, random.below(2) == 0 ? Recompute::Selective : Recompute::Full};
  axes.zero_stage = {0, 1 + static_cast<int>(random.below(3))};
  return axes;
}

inline void run_serially(std::size_t count, const std::function<void(std::size_t)>& task) {
  for (std::size_t index = 0; index < count; ++index) {
    task(index);
  }
}

}  // namespace trainyard
