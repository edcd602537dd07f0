// SPDX-License-Identifier: Apache-2.0
#include "calibration/measured/memory_measurement.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "sim/config.h"

namespace trainyard {
namespace {

constexpr std::array<std::string_view, 3> kLevels{"allocated", "reserved", "device"};
constexpr std::array<std::string_view, 2> kUnits{"GB", "GiB"};
constexpr std::int64_t kMax = 1 << 24;

constexpr Number kMemory{.min = 0.0, .max = 1e6};

// Layers are given to stages, or all stages have as many.
void check_stages(const ConfigNode& node, const Model& model, const ParallelPlan& plan) {
  const auto stages = static_cast<std::size_t>(plan.pipeline_shape().stages());
  if (!plan.stage_layers.empty()) {
    check_stage_layers(plan, model);
  } else if (model.layers.size() % stages != 0) {
    node.fail(fmt::format("stage_layers, as {} stages do not divide {} layers", stages,
                          model.layers.size()),
              "none");
  }
}

void row_fields(Fields& fields, MeasuredMemory& row, const MemoryMeasurements& file) {
  constexpr Whole kDegree{1, kMax};
  const std::vector<std::string_view> schedules = pipeline_schedule_names();
  const auto schedule = [&](const ConfigNode& node) {
    return pipeline_schedules()[node.as_choice(schedules)];
  };
  const auto bytes = [&](const ConfigNode& node) {
    return Bytes(std::llround(kMemory.value(node) * file.unit));
  };
  ParallelPlan& plan = row.plan;
  std::string model;
  row.settings = file.settings;
  fields.required("id", row.id, Text{}, "Name of the row.");
  fields.required("model", model, Text{}, "A key of `models`.");
  fields.optional("tensor", plan.tensor, kDegree, "Tensor ranks: 1.");
  fields.optional("sequence_parallel", plan.has_sequence_parallelism, Flag{},
                  "Sequence parallelism.");
  fields.optional("context", plan.context, kDegree, "Context ranks: 1.");
  fields.optional("pipeline", plan.pipeline, kDegree, "Pipeline ranks: 1.");
  fields.optional("schedule", plan.schedule, Via{Choice{schedules}, schedule}, "Its schedule.");
  fields.optional("chunks", plan.chunks, kDegree, "Chunks of a pipeline rank: 1.");
  fields.optional("data", plan.data, kDegree, "Data ranks: 1.");
  fields.optional("expert", plan.expert, kDegree, "Expert ranks: 1.");
  fields.optional("zero", plan.zero_stage, Whole{0, kMax}, "Stage of ZeRO: 0.");
  fields.required("micro_batch", plan.micro_batch, kDegree, "Sequences of a micro-batch.");
  fields.required("global_batch", plan.global_batch, kDegree, "Sequences of a step.");
  fields.required("sequence", plan.sequence, kDegree, "Tokens of a sequence.");
  fields.optional("recompute", plan.recompute, Choice{kRecomputes}, "Recomputation.");
  fields.optional("stage_layers", plan.stage_layers, List{Whole{0, kMax}}, "Layers of stages.");
  fields.optional("settings", row.settings, Text{}, "Instead of the file's.");
  fields.required("memory", row.measured, Via{kMemory, bytes}, "Of the fullest rank.");
  fields.check([&](const ConfigNode& node) {
    const auto known = file.models.find(model);
    if (known == file.models.end()) {
      node.required("model").fail("one of the models of the file", model);
    }
    row.model = known->second;
    check_stages(node, row.model, plan);
  });
}

// The use at that level.
Bytes at_level(const MemoryUse& use, MemoryLevel level) {
  switch (level) {
    case MemoryLevel::Allocated:
      return use.allocated();
    case MemoryLevel::Reserved:
      return use.reserved();
    case MemoryLevel::Device:
      break;
  }
  return use.device();
}

}  // namespace

void memory_fields(Fields& fields, MemoryMeasurements& file) {
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  const auto unit = [](const ConfigNode& node) { return node.as_choice(kUnits) == 0 ? 1e9 : kGib; };
  const auto row = [&](Fields& inner, MeasuredMemory& one) { row_fields(inner, one, file); };
  fields.required("source", file.source, Text{}, "Where the rows are from.");
  fields.required("level", file.level, Choice{kLevels}, "Which memory was measured.");
  fields.required("unit", file.unit, Via{Choice{kUnits}, unit}, "Unit of the figures.");
  fields.required("settings", file.settings, Text{}, "What software keeps in memory.");
  fields.required("models", file.models, Named{Group{model_fields}}, "Models, as in their files.");
  for (auto& [name, model] : file.models) {
    model.name = name;
  }
  fields.required("rows", file.rows, List{Group{row}}, "What was measured.");
  fields.check([&](const ConfigNode& node) {
    if (file.rows.empty()) {
      node.required("rows").fail("at least one row", "none");
    }
  });
}

MemoryMeasurements load_memory_measurements(const std::filesystem::path& path) {
  ConfigDocument document = ConfigDocument::load(path);
  MemoryMeasurements file;
  read_fields(document.root(), file, memory_fields);
  document.finish();
  return file;
}

Bytes predicted_memory(const MeasuredMemory& row, MemoryLevel level) {
  const MemorySettings settings = memory_settings(row.settings);
  ParallelPlan plan = row.plan;
  plan.element_bytes = static_cast<int>(settings.states.compute);
  const StepMemory memory = step_memory(row.model, plan, settings);
  Bytes max;
  for (const RankMemory& rank : memory.ranks) {
    max = std::max(max, at_level(rank.highest().use, level));
  }
  return max;
}

}  // namespace trainyard
