// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/training_rows.h"

#include <array>
#include <cmath>
#include <set>
#include <span>
#include <tuple>

#include "sim/fields.h"

namespace trainyard {
namespace {

constexpr Number kFigure{.min = 1e-12, .max = 1e15};

// Keys that a table says beside the fields that are read, for people.
constexpr std::array<std::string_view, 17> kRemarks{"note",
                                                    "section",
                                                    "flops_era",
                                                    "ablation",
                                                    "file",
                                                    "system",
                                                    "doc_date",
                                                    "tag",
                                                    "doc_commit",
                                                    "provenance",
                                                    "cited",
                                                    "derived",
                                                    "assumed",
                                                    "tool",
                                                    "step_time_source",
                                                    "comment",
                                                    "predicted_by_simumax"};
constexpr std::array<std::string_view, 10> kOtherMeasurements{
    "aggregate_pflops",       "days_for_300B_tokens", "pct_peak",
    "mfu_without_attention",  "time_to_train_min",    "weak_scaling_efficiency_pct",
    "gradient_reduction_s",   "memory_activation_gb", "memory_optimizer_gb",
    "memory_weights_grads_gb"};

void skip_keys(Fields& fields, std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) {
    fields.optional(key, std::ignore, Unread{}, "For people.");
  }
}

void memory_fields(Fields& fields, TrainingMeasurement& measured) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  std::optional<double> decimal;
  std::optional<double> binary;
  fields.optional("memory_gb", decimal, kFigure, "Memory of the GPU with most, in 1e9 bytes.");
  fields.optional("memory_gib", binary, kFigure, "The same in 2^30 bytes.");
  fields.check([&](const ConfigNode& node) {
    if (decimal && binary) {
      node.required("memory_gib").fail("expected memory_gb or memory_gib, found both");
    }
  });
  if (decimal || binary) {
    measured.memory = Bytes(std::llround(decimal ? *decimal * 1e9 : *binary * kGiB));
  }
}

void measurement_fields(Fields& fields, TrainingMeasurement& measured) {
  fields.optional("step_time_s", measured.step_time_s, kFigure, "Time of a step.");
  fields.optional("tokens_per_s", measured.tokens_per_s, kFigure, "Tokens of the whole cluster.");
  fields.optional("tokens_per_s_per_gpu", measured.tokens_per_s_per_gpu, kFigure, "Of one GPU.");
  fields.optional("samples_per_gpu_s", measured.samples_per_s_per_gpu, kFigure, "Sequences.");
  fields.optional("tflops_per_gpu", measured.tflops_per_gpu, kFigure, "TFLOP/s of one GPU.");
  fields.optional("mfu", measured.mfu_percent, kFigure, "Per cent of the peak, of the model.");
  fields.optional("hfu", measured.hfu_percent, kFigure, "Per cent of the peak, of the hardware.");
  fields.optional("peak_tflops", measured.peak_tflops, kFigure, "That peak.");
  fields.optional("oom", measured.out_of_memory, Flag{}, "Memory was not enough.");
  memory_fields(fields, measured);
  skip_keys(fields, kOtherMeasurements);
}

struct RowDefaults {
  TrainingFields fields;
  std::string convention;
};

// The convention of a name; nothing for a source's own words.
std::optional<FlopsConvention> convention_of(std::string_view name) {
  static constexpr std::array<std::string_view, kFlopsConventions.size()> kNames{
      "hardware-full-recompute", "model", "hardware-selective-recompute", "model-causal", "palm"};
  for (std::size_t index = 0; index < kNames.size(); ++index) {
    if (kNames.at(index) == name) {
      return kFlopsConventions.at(index);
    }
  }
  return std::nullopt;
}

TrainingRow read_row(const ConfigNode& node, const RowDefaults& defaults) {
  TrainingRow row;
  Fields fields(node);
  fields.required("id", row.id, Text{}, "Name of the row.");
  fields.optional("kind", row.kind, Text{}, "What is measured other than a step.");
  fields.optional("task", row.task, Text{}, "pretrain, sft or lora.");
  fields.optional("release", row.release, Text{}, "Release of the software.");
  if (row.kind) {
    row.fields.machine.gpu = defaults.fields.machine.gpu;
    if (const auto cluster = node.optional("cluster"); cluster && cluster->optional("gpu")) {
      row.fields.machine.gpu = cluster->required("gpu").as_string();
    }
    node.skip();
    return row;
  }
  row.fields = read_training_fields(node);
  const bool has_other_recompute = row.fields.plan.other_recompute.has_value();
  fill_missing(row.fields, defaults.fields);
  if (has_other_recompute) {
    row.fields.plan.recompute.reset();
  }
  fields.required("measured", row.measured, Group{measurement_fields}, "The figures as printed.");
  std::string convention = defaults.convention;
  fields.optional("flops_convention", convention, Text{}, "What FLOP/s count.");
  row.measured.convention = convention_of(convention);
  skip_keys(fields, kRemarks);
  return row;
}

}  // namespace

TrainingTable read_training_table(ConfigDocument& document) {
  const ConfigNode root = document.root();
  const ConfigNode source = root.required("source");
  TrainingTable table{.name = std::filesystem::path(document.name()).stem().string(),
                      .title = source.required("title").as_string(),
                      .url = source.required("url").as_string(),
                      .rows = {}};
  source.skip();
  RowDefaults defaults;
  if (const auto node = root.optional("defaults")) {
    defaults.fields = read_training_fields(*node);
    Fields(*node).optional("flops_convention", defaults.convention, Text{}, "What FLOP/s count.");
  }
  std::set<std::string> ids;
  for (const ConfigNode& node : root.required("rows").items()) {
    table.rows.push_back(read_row(node, defaults));
    if (!ids.insert(table.rows.back().id).second) {
      node.required("id").fail("an id that no row above has", node.required("id").found());
    }
  }
  document.finish();
  return table;
}

TrainingTable load_training_table(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  return read_training_table(document);
}

}  // namespace trainyard
