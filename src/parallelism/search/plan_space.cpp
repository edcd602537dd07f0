// SPDX-License-Identifier: Apache-2.0
#include "parallelism/search/plan_space.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "parallelism/model/pipeline_schedule.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr std::string_view kAxisLetters = "tcdp";  // In the order of PlanAxis.
// A rank keeps at least so many tokens of a sequence where nobody asks for more context ranks.
constexpr std::int64_t kMinTokensOfRank = 4096;

std::vector<int> divisors(std::int64_t of, std::int64_t max) {
  std::vector<int> found;
  for (std::int64_t value = 1; value <= std::min(of, max); ++value) {
    if (of % value == 0) {
      found.push_back(static_cast<int>(value));
    }
  }
  return found;
}

std::vector<int> powers_of_two(std::int64_t max) {
  std::vector<int> found;
  for (int value = 1; value <= max; value *= 2) {
    found.push_back(value);
  }
  return found;
}

std::vector<int> default_experts(const Model& model, int gpus) {
  std::vector<int> ranks{1};
  for (const ModelLayer& layer : model.layers) {
    if (layer.experts) {
      for (const int value : divisors(layer.experts->count, gpus)) {
        add_once(ranks, value);
      }
    }
  }
  return ranks;
}

struct Piping {
  const PipelineSchedule* schedule = &kOneForwardOneBackward;
  int chunks = 1;
};

std::vector<Piping> pipings(const PlanAxes& axes, int pipeline) {
  if (pipeline == 1) {
    return {{}};
  }
  std::vector<Piping> found;
  for (const PipelineSchedule* schedule : axes.schedules) {
    if (schedule->chunks) {
      found.push_back({.schedule = schedule, .chunks = *schedule->chunks});
      continue;
    }
    for (const int chunks : axes.chunks) {
      if (chunks > 1) {
        found.push_back({.schedule = schedule, .chunks = chunks});
      }
    }
  }
  return found;
}

std::vector<PlanOrder> orders_of(const PlanAxes& axes, const ParallelPlan& plan) {
  std::vector<PlanOrder> found;
  std::vector<std::vector<PlanAxis>> seen;
  const std::array<int, 4> degrees = plan.degrees();
  for (const PlanOrder& order : axes.orders) {
    std::vector<PlanAxis> axes_that_matter;
    std::copy_if(order.begin(), order.end(), std::back_inserter(axes_that_matter),
                 [&](PlanAxis axis) { return degrees[static_cast<std::size_t>(axis)] > 1; });
    if (std::find(seen.begin(), seen.end(), axes_that_matter) == seen.end()) {
      seen.push_back(std::move(axes_that_matter));
      found.push_back(order);
    }
  }
  return found;
}

class Combinations {
 public:
  Combinations(const PlanAxes& axes, const ParallelPlan& given) : axes_(axes), given_(given) {}

  void add_for(int tensor, int context, int pipeline, int data) {
    ParallelPlan plan = given_;
    plan.tensor = tensor;
    plan.context = context;
    plan.pipeline = pipeline;
    plan.data = data;
    std::vector<bool> sequence = axes_.sequence_parallel;
    if (tensor == 1) {
      sequence = {false};
    }
    for (const bool splits : sequence) {
      plan.has_sequence_parallelism = splits;
      for (const Piping& piping : pipings(axes_, pipeline)) {
        plan.schedule = piping.schedule;
        plan.chunks = piping.chunks;
        // Layers of stages are those of the given plan's own stages.
        plan.stage_layers.clear();
        if (static_cast<std::size_t>(plan.pipeline_shape().stages()) ==
            given_.stage_layers.size()) {
          plan.stage_layers = given_.stage_layers;
        }
        add_experts(plan);
      }
    }
  }

  [[nodiscard]] std::vector<ParallelPlan> plans() && { return std::move(plans_); }

 private:
  void add_experts(ParallelPlan plan) {
    for (const int expert : axes_.expert) {
      plan.expert = expert;
      for (const int expert_tensor : axes_.expert_tensor) {
        plan.expert_tensor = expert_tensor;
        for (const std::int64_t micro_batch : axes_.micro_batch) {
          plan.micro_batch = micro_batch;
          for (const Recompute recompute : axes_.recompute) {
            plan.recompute = recompute;
            add_sharded(plan);
          }
        }
      }
    }
  }

  void add_sharded(ParallelPlan plan) {
    const bool can_shard =
        !plan.compression && (plan.gradient_ranks() > 1 || plan.expert_gradient_ranks() > 1);
    for (std::size_t index = 0; index < axes_.zero_stage.size(); ++index) {
      if (!can_shard && index > 0) {
        break;
      }
      plan.zero_stage = axes_.zero_stage[index];
      plan.shard_group = plan.zero_stage == 0 ? 0 : given_.shard_group;
      for (const PlanOrder& order : orders_of(axes_, plan)) {
        plan.order = order;
        if (plans_.size() == kMaxPlans) {
          throw ConfigError(
              fmt::format("search: expected at most {} plans, found more: fix an axis or give it "
                          "fewer values",
                          kMaxPlans));
        }
        plans_.push_back(plan);
      }
    }
  }

  const PlanAxes& axes_;
  const ParallelPlan& given_;
  std::vector<ParallelPlan> plans_;
};

}  // namespace

PlanAxes axes_of(const Workload& workload) {
  const ParallelPlan& plan = workload.plan;
  return {.tensor = {plan.tensor},
          .sequence_parallel = {plan.has_sequence_parallelism},
          .context = {plan.context},
          .pipeline = {plan.pipeline},
          .schedules = {plan.schedule},
          .chunks = {plan.chunks},
          .expert = {plan.expert},
          .expert_tensor = {plan.expert_tensor},
          .micro_batch = {plan.micro_batch},
          .recompute = {plan.recompute},
          .zero_stage = {plan.zero_stage},
          .orders = {plan.order}};
}

PlanAxes default_axes(const Workload& workload, int gpus, int domain_gpus) {
  const ParallelPlan& given = workload.plan;
  const auto layers = static_cast<std::int64_t>(workload.model.layers.size());
  PlanAxes axes{
      .tensor = divisors(gpus, domain_gpus),
      .sequence_parallel = {false, true},
      .context = powers_of_two(std::min<std::int64_t>(gpus, given.sequence / kMinTokensOfRank)),
      .pipeline = divisors(gpus, layers + 2),
      .schedules = {&kOneForwardOneBackward, &kInterleaved},
      .chunks = {2, 3, 4, 6, 8},
      .expert = default_experts(workload.model, gpus),
      .expert_tensor = {1},
      .micro_batch = {1, 2, 4, 8},
      .recompute = {Recompute::None, Recompute::Selective, Recompute::Full},
      .zero_stage = {0, 1, 2, 3},
      .orders = {kMegatronOrder,
                 {PlanAxis::Tensor, PlanAxis::Context, PlanAxis::Pipeline, PlanAxis::Data}}};
  if (has_experts(workload.model)) {
    axes.sequence_parallel = {true};
  }
  if (axes.context.empty()) {
    axes.context = {1};
  }
  // The workload's own plan is always among them.
  add_once(axes.tensor, given.tensor);
  add_once(axes.context, given.context);
  add_once(axes.pipeline, given.pipeline);
  add_once(axes.schedules, given.schedule);
  if (given.chunks > 1) {
    add_once(axes.chunks, given.chunks);
  }
  add_once(axes.expert, given.expert);
  add_once(axes.expert_tensor, given.expert_tensor);
  add_once(axes.micro_batch, given.micro_batch);
  add_once(axes.orders, given.order);
  return axes;
}

std::vector<ParallelPlan> plans_of(const PlanAxes& axes, const ParallelPlan& given, int gpus) {
  Combinations combinations(axes, given);
  for (const int tensor : axes.tensor) {
    for (const int context : axes.context) {
      for (const int pipeline : axes.pipeline) {
        const std::int64_t ranks = std::int64_t{tensor} * context * pipeline;
        if (gpus % ranks == 0) {
          combinations.add_for(tensor, context, pipeline, static_cast<int>(gpus / ranks));
        }
      }
    }
  }
  return std::move(combinations).plans();
}

std::string order_letters(const PlanOrder& order) {
  std::string letters;
  for (const PlanAxis axis : order) {
    letters += kAxisLetters[static_cast<std::size_t>(axis)];
  }
  return letters;
}

std::optional<PlanOrder> order_of(std::string_view letters) {
  PlanOrder order{};
  if (letters.size() != order.size()) {
    return std::nullopt;
  }
  for (std::size_t index = 0; index < order.size(); ++index) {
    const std::size_t axis = kAxisLetters.find(letters[index]);
    if (axis == std::string_view::npos || letters.find(letters[index]) != index) {
      return std::nullopt;
    }
    order[index] = static_cast<PlanAxis>(axis);
  }
  return order;
}

}  // namespace trainyard
