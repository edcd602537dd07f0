// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/training_run.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "calibration/training/training_model.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Collects what is missing while the plan is put together.
class PlanReader {
 public:
  PlanReader(const TrainingRow& row, const Model& model, std::vector<std::string>& missing)
      : fields_(row.fields.plan),
        machine_(row.fields.machine),
        model_(model),
        missing_(missing),
        sequence_(needed(row.fields.model.sequence, "model.seq", std::int64_t{1})) {}

  [[nodiscard]] ParallelPlan plan() {
    ParallelPlan plan;
    plan.sequence = sequence_;
    read_ranks(plan);
    read_pipeline(plan);
    read_sharding(plan);
    read_batch(plan);
    if (fields_.other_recompute && !fields_.recompute) {
      missing_.push_back(fmt::format("parallel.recompute ({})", *fields_.other_recompute));
    } else {
      plan.recompute = needed(fields_.recompute, "parallel.recompute", Recompute::None);
    }
    return plan;
  }
  // The numbers that do not fit; empty if all do.
  [[nodiscard]] const std::string& clash() const { return clash_; }

 private:
  template <typename Value>
  Value needed(const std::optional<Value>& field, std::string_view name, Value otherwise) {
    if (!field) {
      missing_.emplace_back(name);
    }
    return field.value_or(otherwise);
  }

  void read_ranks(ParallelPlan& plan) {
    plan.tensor = needed(fields_.tensor, "parallel.tp", 1);
    plan.context = needed(fields_.context, "parallel.cp", 1);
    plan.pipeline = needed(fields_.pipeline, "parallel.pp", 1);
    if (plan.tensor > 1) {
      plan.has_sequence_parallelism = needed(fields_.sequence_parallelism, "parallel.sp", false);
    }
    const int gpus = needed(machine_.gpus, "cluster.gpus", 1);
    const int others = plan.tensor * plan.context * plan.pipeline;
    plan.data = fields_.data.value_or(std::max(1, gpus / others));
    const bool has_experts = std::any_of(model_.layers.begin(), model_.layers.end(),
                                         [](const ModelLayer& layer) { return !!layer.experts; });
    plan.expert =
        has_experts ? needed(fields_.expert, "parallel.ep", 1) : fields_.expert.value_or(1);
    plan.expert_tensor = has_experts && plan.tensor > 1
                             ? needed(fields_.expert_tensor, "parallel.etp", 1)
                             : fields_.expert_tensor.value_or(1);
  }

  void read_pipeline(ParallelPlan& plan) {
    const int chunks = fields_.chunks.value_or(1);
    if (plan.pipeline == 1) {
      plan.chunks = chunks;  // check() refuses more than one.
      return;
    }
    plan.schedule = fields_.schedule.value_or(plan.schedule);
    if (!fields_.schedule && !fields_.chunks) {
      missing_.emplace_back("parallel.vpp");
    }
    if (chunks > 1 && plan.schedule->with_chunks != nullptr) {
      plan.schedule = plan.schedule->with_chunks;
    }
    plan.chunks = plan.schedule->chunks ? fields_.chunks.value_or(*plan.schedule->chunks)
                                        : needed(fields_.chunks, "parallel.vpp", 2);
  }

  void read_sharding(ParallelPlan& plan) {
    plan.zero_stage = plan.gradient_ranks() > 1 ? needed(fields_.zero_stage, "parallel.zero", 0)
                                                : fields_.zero_stage.value_or(0);
    plan.shard_group = fields_.shard_group.value_or(0);
    if (fields_.shards_within_node.value_or(false) && plan.tensor == 1) {
      plan.shard_group = std::min(needed(machine_.gpus_per_node, "cluster.gpus_per_node", 1),
                                  plan.gradient_ranks());
    }
  }

  // Two of the three give the third.
  void read_batch(ParallelPlan& plan) {
    const auto& [micro, global, count] =
        std::tie(fields_.micro_batch, fields_.global_batch, fields_.micro_batches);
    const std::int64_t data = plan.data;
    if (!micro && !(global && count)) {
      missing_.emplace_back("parallel.micro_batch");
    }
    if (!global && !(micro && count)) {
      missing_.emplace_back("parallel.global_batch");
    }
    if (micro && global) {
      plan.micro_batch = *micro;
      plan.global_batch = *global;
      if (count && *micro * data * *count != *global) {
        clash_ = fmt::format(
            "expected micro-batch x data x micro-batches to be the global batch, found {} x {} x "
            "{} and {}",
            *micro, data, *count, *global);
      }
    } else if (micro && count) {
      plan.micro_batch = *micro;
      plan.global_batch = *micro * data * *count;
    } else if (global && count) {
      plan.global_batch = *global;
      plan.micro_batch = std::max<std::int64_t>(1, *global / (data * *count));
      if (plan.micro_batch * data * *count != *global) {
        clash_ = fmt::format(
            "expected data x micro-batches to divide the global batch, found {} x {} and {}", data,
            *count, *global);
      }
    }
  }

  const PlanFields& fields_;
  const MachineFields& machine_;
  const Model& model_;
  std::vector<std::string>& missing_;
  std::int64_t sequence_;
  std::string clash_;
};

// ConfigErrors of plans begin with this.
constexpr std::string_view kPlan = "plan: ";

std::string clash_of(const ParallelPlan& plan, const Model& model, int gpus) {
  try {
    check(plan, model, gpus);
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    return text.starts_with(kPlan) ? text.substr(kPlan.size()) : text;
  }
  return "";
}

}  // namespace

std::optional<double> measured_seconds(const TrainingMeasurement& measured, const Model& model,
                                       const ParallelPlan& plan, int gpus) {
  const auto samples = static_cast<double>(plan.global_batch);
  const double tokens = samples * static_cast<double>(plan.sequence);
  if (measured.step_time_s) {
    return measured.step_time_s;
  }
  if (measured.tokens_per_s) {
    return tokens / *measured.tokens_per_s;
  }
  if (measured.tokens_per_s_per_gpu) {
    return tokens / (*measured.tokens_per_s_per_gpu * gpus);
  }
  if (measured.samples_per_s_per_gpu) {
    return samples / (*measured.samples_per_s_per_gpu * gpus);
  }
  if (!measured.convention) {
    return std::nullopt;
  }
  const double teraflops =
      training_flops(model, plan.sequence, *measured.convention) * tokens / (1e12 * gpus);
  if (measured.tflops_per_gpu) {
    return teraflops / *measured.tflops_per_gpu;
  }
  if (measured.mfu_percent && measured.peak_tflops) {
    return teraflops / (*measured.mfu_percent / 100.0 * *measured.peak_tflops);
  }
  return std::nullopt;
}

bool TrainingRun::has_experts() const {
  return trainyard::has_experts(model);
}

const Model& ModelFolder::model(const std::string& name) {
  const auto found = models_.find(name);
  if (found != models_.end()) {
    return found->second;
  }
  return models_.emplace(name, load_model(folder_ / (name + ".yaml"))).first->second;
}

TrainingResolution resolve(const TrainingRow& row, ModelFolder& models) {
  TrainingResolution result;
  const ModelResolution model = model_of(row.fields.model, models);
  result.missing = model.missing;
  PlanReader reader(row, model.model, result.missing);
  ParallelPlan plan = reader.plan();
  const auto& [machine, software] = std::tie(row.fields.machine, row.fields.software);
  if (!machine.gpu) {
    result.missing.emplace_back("cluster.gpu");
  }
  if (!machine.gpus_per_node && machine.gpus.value_or(1) > 1) {
    result.missing.emplace_back("cluster.gpus_per_node");
  }
  if (!software.precision) {
    result.missing.emplace_back("parallel.precision");
  }
  plan.element_bytes = row_of(software.precision.value_or(Precision::Bf16)).element_bytes;
  const int gpus = machine.gpus.value_or(1);
  const std::optional<double> measured = measured_seconds(row.measured, model.model, plan, gpus);
  if (!measured) {
    result.missing.emplace_back("measured.step_time_s");
  }
  if (!result.missing.empty()) {
    return result;
  }
  result.clash = !model.clash.empty()      ? model.clash
                 : !reader.clash().empty() ? reader.clash()
                                           : clash_of(plan, model.model, gpus);
  if (result.clash.empty()) {
    result.run = TrainingRun{.id = row.id,
                             .model = model.model,
                             .plan = plan,
                             .software = software,
                             .precision = *software.precision,
                             .gpu = *machine.gpu,
                             .gpus = gpus,
                             .gpus_per_node = machine.gpus_per_node.value_or(1),
                             .measured_s = *measured};
  }
  return result;
}

}  // namespace trainyard
