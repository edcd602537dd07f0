// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/parallel_plan.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <numeric>
#include <string>

#include "sim/config_error.h"

namespace trainyard {
namespace {

// Schedules and memory are walked pass by pass.
constexpr std::int64_t kMaxMicroBatches = 1'000'000;

[[noreturn]] void fail(const std::string& text) {
  throw ConfigError("plan: " + text);
}

void require_divides(std::string_view divisor_name, std::int64_t divisor, std::string_view name,
                     std::int64_t value) {
  if (value % divisor != 0) {
    fail(fmt::format("expected {} to divide {}, found {} and {}", divisor_name, name, divisor,
                     value));
  }
}

void check_ranks(const ParallelPlan& plan, int gpus) {
  const std::int64_t found = std::int64_t{plan.tensor} * std::int64_t{plan.context} *
                             std::int64_t{plan.pipeline} * std::int64_t{plan.data};
  if (found != gpus) {
    fail(fmt::format(
        "expected tensor x context x pipeline x data to be the number of GPUs, found {} x {} x {} "
        "x {} = {} and {}",
        plan.tensor, plan.context, plan.pipeline, plan.data, found, gpus));
  }
  if (plan.has_sequence_parallelism && plan.tensor == 1) {
    fail(fmt::format("expected tensor above 1 with sequence parallelism, found {}", plan.tensor));
  }
}

void check_batch(const ParallelPlan& plan) {
  const std::int64_t step = plan.micro_batch * plan.data;
  if (plan.global_batch % step != 0) {
    fail(fmt::format("expected a global batch that micro-batch x data divide, found {} and {} x {}",
                     plan.global_batch, plan.micro_batch, plan.data));
  }
  if (plan.micro_batches() > kMaxMicroBatches) {
    fail(fmt::format(
        "expected at most {} micro-batches, found {}, a global batch of {} over "
        "micro-batch x data of {} x {}",
        kMaxMicroBatches, plan.micro_batches(), plan.global_batch, plan.micro_batch, plan.data));
  }
  require_divides("context", plan.context, "the sequence", plan.sequence);
  if (plan.has_sequence_parallelism) {
    require_divides("tensor", plan.tensor, "the tokens of a rank's sequence",
                    plan.sequence / plan.context);
  }
  check(plan.pipeline_shape());
}

void check_experts(const ParallelPlan& plan, const Experts& experts) {
  require_divides("expert", plan.expert, "the number of experts", experts.count);
  require_divides("expert_tensor", plan.expert_tensor, "the size of an expert",
                  experts.expert.size);
  require_divides("expert x expert_tensor", plan.expert * plan.expert_tensor,
                  "tensor x context x data", plan.tensor * plan.context * plan.data);
}

void check_layer(const ParallelPlan& plan, const ModelLayer& layer) {
  require_divides("tensor", plan.tensor, "the heads", layer.attention.heads());
  if (plan.context_kind == ContextParallelism::AllToAll) {
    require_divides("tensor x context", plan.tensor * plan.context, "the heads",
                    layer.attention.heads());
    // TransformerEngine, context_parallel.py, AttnFuncWithCPAndQKVOA2A: heads of keys of a tensor
    // rank are sharded as those of queries are.
    if (layer.attention.grouped) {
      require_divides("tensor x context", plan.tensor * plan.context,
                      "the heads of keys and values", layer.attention.grouped->kv_heads);
    }
  }
  if (layer.feed_forward) {
    require_divides("tensor", plan.tensor, "the size of the feed-forward",
                    layer.feed_forward->size);
  }
  if (layer.experts) {
    check_experts(plan, *layer.experts);
  }
}

void check_sharding(const ParallelPlan& plan) {
  if (plan.shard_group != 0) {
    if (plan.zero_stage == 0) {
      fail(fmt::format("expected a ZeRO stage of 1 to 3 with a shard group of {}, found 0",
                       plan.shard_group));
    }
    require_divides("the shard group", plan.shard_group, "data x context", plan.gradient_ranks());
  }
}

// A gradient of the inputs alone is nearly the whole backward pass of a frozen matrix.
void check_adapters_plan(const ParallelPlan& plan) {
  if (plan.schedule->splits_backward) {
    fail(
        fmt::format("expected a schedule that does not split the backward pass with adapters, "
                    "found {}",
                    plan.schedule->name));
  }
  if (plan.servers) {
    fail("expected no parameter servers with adapters, found them");
  }
}

// Hooks of DistributedDataParallel get whole gradients: nothing else has them.
void check_compression(const ParallelPlan& plan, const Model& model) {
  if (!plan.compression) {
    return;
  }
  if (plan.zero_stage > 0) {
    fail(fmt::format("expected zero_stage 0 with gradient_compression, found {}", plan.zero_stage));
  }
  if (plan.servers || plan.offload.optimizer) {
    fail(fmt::format("expected no {} with gradient_compression, found {}",
                     plan.servers ? "parameter servers" : "optimizer on the host",
                     plan.servers ? "them" : "it"));
  }
  if (model.adapters && plan.compression->method == CompressionMethod::PowerSgd) {
    fail("expected another gradient_compression than powersgd with adapters, found it");
  }
}

}  // namespace

std::string_view to_string(Recompute recompute) {
  return kRecomputes.at(static_cast<std::size_t>(recompute));
}

std::string_view to_string(ContextParallelism kind) {
  return kContextKinds.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(PlanAxis axis) {
  return kAxes.at(static_cast<std::size_t>(axis));
}

std::string_view to_string(CompressionMethod method) {
  return kCompressions.at(static_cast<std::size_t>(method));
}

void check_stage_layers(const ParallelPlan& plan, const Model& model) {
  if (plan.stage_layers.empty()) {
    return;
  }
  const auto stages = static_cast<std::size_t>(plan.pipeline_shape().stages());
  if (plan.stage_layers.size() != stages) {
    fail(fmt::format("expected the layers of {} stages, found {}", stages,
                     plan.stage_layers.size()));
  }
  const std::int64_t layers =
      std::accumulate(plan.stage_layers.begin(), plan.stage_layers.end(), std::int64_t{0});
  if (layers != static_cast<std::int64_t>(model.layers.size())) {
    fail(fmt::format("expected stages with the {} layers of {}, found {}", model.layers.size(),
                     model.title, layers));
  }
}

void check(const ParallelPlan& plan, const Model& model, int gpus) {
  check_ranks(plan, gpus);
  if (model.adapters) {
    check_adapters_plan(plan);
  }
  check_batch(plan);
  check_sharding(plan);
  check_compression(plan, model);
  check_stage_layers(plan, model);
  for (const ModelLayer& layer : model.layers) {
    check_layer(plan, layer);
  }
  if (!has_experts(model) && plan.expert * plan.expert_tensor > 1) {
    fail(
        fmt::format("expected expert and expert_tensor of 1, as {} has no experts, found {} and {}",
                    model.title, plan.expert, plan.expert_tensor));
  }
  const auto stages = static_cast<std::size_t>(plan.pipeline_shape().stages());
  // The embedding and the head may be a stage each.
  if (stages > model.layers.size() + 2) {
    fail(fmt::format("expected at least one layer for each of {} stages, found {} layers", stages,
                     model.layers.size()));
  }
  if (model.patches && plan.sequence != model.patches->tokens()) {
    fail(fmt::format("expected a sequence of {} tokens, an image of {}, found {}",
                     model.patches->tokens(), model.title, plan.sequence));
  }
  if (model.learned_positions != 0 && plan.sequence > model.learned_positions) {
    fail(fmt::format(
        "expected a sequence of at most {} tokens, the learned positions of {}, found {}",
        model.learned_positions, model.title, plan.sequence));
  }
}

}  // namespace trainyard
