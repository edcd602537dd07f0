// SPDX-License-Identifier: Apache-2.0
#include "calibration/measured/memory_measurement.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sim/config.h"

namespace trainyard {
namespace {

constexpr std::array<std::string_view, 3> kLevels{"allocated", "reserved", "device"};
constexpr std::array<std::string_view, 2> kUnits{"GB", "GiB"};
constexpr std::int64_t kMax = 1 << 24;

int whole_or(const ConfigNode& node, std::string_view key, int min) {
  const auto found = node.optional(key);
  return found ? static_cast<int>(found->as_integer(min, kMax)) : min;
}

ParallelPlan read_plan(const ConfigNode& node) {
  const auto sequence_parallel = node.optional("sequence_parallel");
  const auto recompute = node.optional("recompute");
  return {
      .tensor = whole_or(node, "tensor", 1),
      .has_sequence_parallelism = sequence_parallel && sequence_parallel->as_bool(),
      .context = whole_or(node, "context", 1),
      .pipeline = whole_or(node, "pipeline", 1),
      .schedule = pipeline_schedules()[node.choice_or_first("schedule", pipeline_schedule_names())],
      .chunks = whole_or(node, "chunks", 1),
      .data = whole_or(node, "data", 1),
      .expert = whole_or(node, "expert", 1),
      .zero_stage = whole_or(node, "zero", 0),
      .micro_batch = node.required("micro_batch").as_integer(1, kMax),
      .global_batch = node.required("global_batch").as_integer(1, kMax),
      .sequence = node.required("sequence").as_integer(1, kMax),
      .recompute =
          recompute ? static_cast<Recompute>(recompute->as_choice(kRecomputes)) : Recompute::None};
}

void read_stage_layers(const ConfigNode& node, const Model& model, ParallelPlan& plan) {
  if (const auto found = node.optional("stage_layers")) {
    for (const ConfigNode& item : found->items()) {
      plan.stage_layers.push_back(static_cast<int>(item.as_integer(0, kMax)));
    }
    check_stage_layers(plan, model);
    return;
  }
  const auto stages = static_cast<std::size_t>(plan.pipeline_shape().stages());
  if (model.layers.size() % stages != 0) {
    node.fail(fmt::format("stage_layers, as {} stages do not divide {} layers", stages,
                          model.layers.size()),
              "none");
  }
}

MeasuredMemory read_row(const ConfigNode& node, const std::map<std::string, Model>& models,
                        const std::string& settings, double unit) {
  const ConfigNode name = node.required("model");
  const auto model = models.find(name.as_string());
  if (model == models.end()) {
    name.fail("one of the models of the file", name.as_string());
  }
  MeasuredMemory row{.id = node.required("id").as_string(),
                     .model = model->second,
                     .plan = read_plan(node),
                     .settings = settings,
                     .measured = {}};
  read_stage_layers(node, row.model, row.plan);
  if (const auto own = node.optional("settings")) {
    row.settings = own->as_string();
  }
  constexpr double kMaxMemory = 1e6;
  row.measured = Bytes(std::llround(node.required("memory").as_number(0.0, kMaxMemory) * unit));
  return row;
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

MemoryMeasurements load_memory_measurements(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  const ConfigNode root = document.root();
  MemoryMeasurements measurements{
      .source = root.required("source").as_string(),
      .level = static_cast<MemoryLevel>(root.required("level").as_choice(kLevels)),
      .rows = {}};
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  const double unit = root.required("unit").as_choice(kUnits) == 0 ? 1e9 : kGib;
  const std::string settings = root.required("settings").as_string();
  std::map<std::string, Model> models;
  for (const auto& [name, node] : root.required("models").entries()) {
    models.emplace(name, read_model(node, name));
  }
  for (const ConfigNode& node : root.required("rows").items()) {
    measurements.rows.push_back(read_row(node, models, settings, unit));
  }
  if (measurements.rows.empty()) {
    root.required("rows").fail("at least one row", "none");
  }
  document.finish();
  return measurements;
}

Bytes predicted_memory(const MeasuredMemory& row, MemoryLevel level) {
  const StepMemory memory = step_memory(row.model, row.plan, memory_settings(row.settings));
  Bytes max;
  for (const RankMemory& rank : memory.ranks) {
    max = std::max(max, at_level(rank.highest().use, level));
  }
  return max;
}

}  // namespace trainyard
