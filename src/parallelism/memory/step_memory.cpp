// SPDX-License-Identifier: Apache-2.0
#include "parallelism/memory/step_memory.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "parallelism/memory/memory_walk.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

[[noreturn]] void refuse(const std::string& text) {
  throw ConfigError("memory: " + text);
}

// Which products alternate depends on how the software orders them beside those of tokens.
void check_products(const ParallelPlan& plan, const MemorySettings& settings,
                    std::string_view beside) {
  if (plan.recompute == Recompute::Selective &&
      settings.activations.selective == SelectiveRecompute::AlternateProducts) {
    refuse(fmt::format(
        "expected no selective recomputation of alternate products with {}, found both", beside));
  }
}

void check_expert_plan(const ParallelPlan& plan) {
  if (plan.tensor > 1 && !plan.has_sequence_parallelism && plan.expert_tensor != plan.tensor) {
    refuse(
        fmt::format("expected sequence parallelism or expert_tensor as tensor with experts, "
                    "found expert_tensor {} and tensor {}",
                    plan.expert_tensor, plan.tensor));
  }
  if (plan.shard_group != 0 && plan.expert_gradient_ranks() % plan.shard_group != 0) {
    refuse(
        fmt::format("expected a shard group that divides the {} ranks of an expert's gradient, "
                    "found {}",
                    plan.expert_gradient_ranks(), plan.shard_group));
  }
}

// Sums stay far below the largest integer.
void check_sizes(const Model& model, const ParallelPlan& plan, const MemorySettings& settings,
                 const ExpertLoads& loads) {
  constexpr double kMaxBytes = 1e15;
  double total = 0.0;
  for (std::size_t index = 0; index < model.layers.size(); ++index) {
    const ActivationOptions options =
        activation_options(model, static_cast<int>(index), plan, settings, loads);
    for (const SavedTensor& tensor : saved_tensors(model, model.layers[index], plan, options)) {
      total += static_cast<double>(tensor.bytes_per_token);
    }
  }
  total *= static_cast<double>(plan.tokens());
  if (total > kMaxBytes) {
    refuse(fmt::format("expected activations of at most 1 PB in a micro-batch, found {:.0f} PB",
                       total / kMaxBytes));
  }
}

}  // namespace

std::string_view to_string(MemoryClass memory_class) {
  constexpr std::array<std::string_view, kMemoryClasses.size()> kNames{
      "weights", "gradients", "optimizer states", "gathered weights", "activations", "loss",
      "working", "buffers",   "fragmentation",    "communication",    "context"};
  return kNames[static_cast<std::size_t>(memory_class)];
}

Bytes MemoryUse::allocated() const {
  return reserved() - (*this)[MemoryClass::Fragmentation];
}

Bytes MemoryUse::reserved() const {
  return device() - (*this)[MemoryClass::Communication] - (*this)[MemoryClass::Context];
}

Bytes MemoryUse::device() const {
  return std::accumulate(by_class.begin(), by_class.end(), Bytes());
}

std::string MemoryMoment::where() const {
  if (unit.place == StepPlace::Optimizer) {
    return name_of(unit);
  }
  constexpr std::array<std::string_view, 4> kKinds{"forward", "backward", "gradient of inputs",
                                                   "gradient of weights"};
  return fmt::format("{} of micro-batch {}, chunk {}, {}",
                     kKinds[static_cast<std::size_t>(pass.kind)], pass.micro_batch, pass.chunk,
                     name_of(unit));
}

MemoryMoment RankMemory::moment(std::size_t position) const {
  MemoryMoment moment = moments[moment_of_pass[position]];
  moment.position = position;
  moment.pass = passes[position];
  return moment;
}

MemorySettings memory_settings(const SoftwareProfile& software) {
  const bool is_unfused = software.attention == "unfused";
  if (!is_unfused && software.fusion != "fused") {
    return memory_settings("pytorch-fsdp");
  }
  MemorySettings settings = memory_settings(is_unfused ? "megatron-2022" : "megatron-core");
  settings.states.gradient = software.gradient_bytes;
  settings.activations.keeps_projections = software.full_recompute == FullRecompute::Unprojected;
  return settings;
}

ActivationOptions activation_options(const Model& model, int of_model, const ParallelPlan& plan,
                                     const MemorySettings& settings, const ExpertLoads& loads) {
  ActivationOptions options = settings.activations;
  const auto& experts = model.layers[static_cast<std::size_t>(of_model)].experts;
  if (experts) {
    options.expert_imbalance = fullest_rank(loads, of_model, *experts, plan.expert);
  }
  return options;
}

StepMemory step_memory(const Model& model, const ParallelPlan& plan, const MemorySettings& settings,
                       const ExpertLoads& loads) {
  if (has_experts(model)) {
    check_products(plan, settings, "experts");
    check_expert_plan(plan);
  }
  if (model.modulation) {
    check_products(plan, settings, "modulation");
  }
  check_sizes(model, plan, settings, loads);
  StepMemory memory;
  for (int rank = 0; rank < plan.pipeline; ++rank) {
    memory.ranks.push_back(rank_memory(model, plan, settings, loads, rank));
  }
  const auto worst = std::ranges::max_element(
      memory.ranks, {}, [](const RankMemory& rank) { return rank.highest().use.device(); });
  memory.worst = static_cast<std::size_t>(worst - memory.ranks.begin());
  return memory;
}

StepMemory step_memory(const Model& model, const ParallelPlan& plan,
                       const SoftwareProfile& software, const ExpertLoads& loads) {
  MemorySettings settings = memory_settings(software);
  if (plan.element_bytes == 4) {
    // Weights are their own master copy.
    settings.states = {.weight = 4, .compute = 4, .gradient = 4, .optimizer = 8};
  }
  return step_memory(model, plan, settings, loads);
}

Bytes device_capacity(Bytes data_sheet) {
  constexpr double kGibPerGb = 1.073741824;
  constexpr double kNotWithheld = 0.995;
  return Bytes(std::llround(static_cast<double>(data_sheet.count()) * kGibPerGb * kNotWithheld));
}

std::string describe_fit(const MemoryUse& use, Bytes capacity, std::string_view who,
                         std::string_view when) {
  std::array classes = kMemoryClasses;
  std::stable_sort(classes.begin(), classes.end(),
                   [&](MemoryClass a, MemoryClass b) { return use[a] > use[b]; });
  std::string parts;
  for (const MemoryClass memory_class : classes) {
    if (use[memory_class].count() != 0) {
      parts += fmt::format("{}{} {:.2f}", parts.empty() ? "" : ", ", to_string(memory_class),
                           gibibytes(use[memory_class]));
    }
  }
  const Bytes needed = use.device();
  const std::string_view fit = needed <= capacity ? "fits"
                               : needed - use[MemoryClass::Fragmentation] <= capacity
                                   ? "fits without fragmentation"
                                   : "out of memory";
  return fmt::format("{}: {} needs {:.2f} of {:.2f} GiB{}: {}", fit, who, gibibytes(needed),
                     gibibytes(capacity), when, parts);
}

std::string memory_verdict(const StepMemory& memory, Bytes capacity) {
  const RankMemory& rank = memory.highest();
  const MemoryMoment& moment = rank.highest();
  return describe_fit(moment.use, capacity, fmt::format("pipeline rank {}", rank.rank),
                      " at " + moment.where());
}

}  // namespace trainyard
