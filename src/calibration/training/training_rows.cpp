// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/training_rows.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/fields.h"

namespace trainyard {
namespace {

constexpr Number kFigure{.min = 1e-12, .max = 1e15};

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
  skip_keys(fields, {"aggregate_pflops",
                     "days_for_300B_tokens",
                     "pct_peak",
                     "mfu_without_attention",
                     "time_to_train_min",
                     "weak_scaling_efficiency_pct",
                     "gradient_reduction_s",
                     "memory_activation_gb",
                     "memory_optimizer_gb",
                     "memory_weights_grads_gb",
                     "forward_ms",
                     "backward_ms",
                     "combined_ms",
                     "t_forward_ms",
                     "t_backward_input_ms",
                     "t_backward_weight_ms",
                     "t_comm_ms",
                     "params_and_optimizer_gib",
                     "activations_no_recompute_gib",
                     "activations_selective_sp_gib"});
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

void row_fields(Fields& fields, TrainingRow& row, const RowDefaults& defaults) {
  fields.required("id", row.id, Text{}, "Name of the row.");
  fields.optional("kind", row.kind, Text{}, "What is measured other than a step.");
  fields.optional("task", row.task, Text{}, "pretrain, sft or lora.");
  fields.optional("release", row.release, Text{}, "Release of the software.");
  training_fields(fields, row.fields);
  const bool has_other_recompute = row.fields.plan.other_recompute.has_value();
  fill_missing(row.fields, defaults.fields);
  if (has_other_recompute) {
    row.fields.plan.recompute.reset();
  }
  fields.required("measured", row.measured, Group{measurement_fields}, "The figures as printed.");
  std::string convention = defaults.convention;
  fields.optional("flops_convention", convention, Text{}, "What FLOP/s count.");
  row.measured.convention = convention_of(convention);
  skip_keys(fields, {"note", "section", "flops_era", "ablation", "file", "system", "doc_date",
                     "tag", "doc_commit", "provenance", "cited", "derived", "assumed", "tool",
                     "step_time_source", "comment", "predicted_by_simumax"});
}

void source_fields(Fields& fields, TrainingTable& table) {
  fields.required("title", table.title, Text{}, "Title of the source.");
  fields.required("url", table.url, Text{}, "Where it is.");
  skip_keys(fields, {"date", "note", "provenance", "repo_or_site"});
}

}  // namespace

void training_table_fields(Fields& fields, TrainingTable& table) {
  RowDefaults defaults;
  const auto default_fields = [](Fields& inner, RowDefaults& of_rows) {
    training_fields(inner, of_rows.fields);
    inner.optional("flops_convention", of_rows.convention, Text{}, "What FLOP/s count.");
  };
  const auto row = [&](Fields& inner, TrainingRow& one) {
    row_fields(inner, one, defaults);
    inner.check([&](const ConfigNode& node) {
      if (std::ranges::count(table.rows, one.id, &TrainingRow::id) > 1) {
        node.required("id").fail("an id that no row above has", node.required("id").found());
      }
    });
  };
  fields.required("source", table, Group{source_fields}, "Where the rows are from.");
  fields.optional("defaults", defaults, Group{default_fields}, "What rows say that say nothing.");
  fields.required("rows", table.rows, List{Group{row}}, "What was measured.");
}

TrainingTable read_training_table(ConfigDocument& document) {
  TrainingTable table;
  table.name = std::filesystem::path(document.name()).stem().string();
  read_fields(document.root(), table, training_table_fields);
  document.finish();
  return table;
}

TrainingTable load_training_table(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  return read_training_table(document);
}

}  // namespace trainyard
