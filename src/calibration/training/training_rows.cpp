// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/training_rows.h"

#include <array>
#include <cmath>
#include <set>

namespace trainyard {
namespace {

constexpr double kMax = 1e15;
constexpr double kMin = 1e-12;

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

void skip_if_there(const ConfigNode& node, std::string_view key) {
  if (const auto found = node.optional(key)) {
    found->skip();
  }
}

std::optional<std::string> text_of(const ConfigNode& node, std::string_view key) {
  const auto found = node.optional(key);
  return found ? std::optional<std::string>(found->as_string()) : std::nullopt;
}

std::optional<double> positive(const ConfigNode& node, std::string_view key) {
  const auto found = node.optional(key);
  return found ? std::optional<double>(found->as_number(kMin, kMax)) : std::nullopt;
}

std::optional<Bytes> read_memory(const ConfigNode& node) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  const auto decimal = positive(node, "memory_gb");
  const auto binary = positive(node, "memory_gib");
  if (decimal && binary) {
    node.required("memory_gib").fail("expected memory_gb or memory_gib, found both");
  }
  if (!decimal && !binary) {
    return std::nullopt;
  }
  return Bytes(std::llround(decimal ? *decimal * 1e9 : *binary * kGiB));
}

TrainingMeasurement read_measurement(const ConfigNode& node) {
  TrainingMeasurement measured{.step_time_s = positive(node, "step_time_s"),
                               .tokens_per_s = positive(node, "tokens_per_s"),
                               .tokens_per_s_per_gpu = positive(node, "tokens_per_s_per_gpu"),
                               .samples_per_s_per_gpu = positive(node, "samples_per_gpu_s"),
                               .tflops_per_gpu = positive(node, "tflops_per_gpu"),
                               .mfu_percent = positive(node, "mfu"),
                               .hfu_percent = positive(node, "hfu"),
                               .peak_tflops = positive(node, "peak_tflops"),
                               .memory = read_memory(node)};
  if (const auto flag = node.optional("oom")) {
    measured.out_of_memory = flag->as_bool();
  }
  for (const std::string_view key : kOtherMeasurements) {
    skip_if_there(node, key);
  }
  return measured;
}

struct RowDefaults {
  TrainingFields fields;
  std::optional<std::string> convention;
};

TrainingRow read_row(const ConfigNode& node, const RowDefaults& defaults) {
  TrainingRow row{.id = node.required("id").as_string(),
                  .kind = text_of(node, "kind"),
                  .task = text_of(node, "task"),
                  .release = text_of(node, "release"),
                  .fields = {},
                  .measured = {}};
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
  row.measured = read_measurement(node.required("measured"));
  std::optional<std::string> convention = text_of(node, "flops_convention");
  convention = convention ? convention : defaults.convention;
  row.measured.convention =
      convention ? parse_flops_convention(*convention) : std::optional<FlopsConvention>();
  for (const std::string_view key : kRemarks) {
    skip_if_there(node, key);
  }
  return row;
}

}  // namespace

std::optional<FlopsConvention> parse_flops_convention(std::string_view text) {
  struct Name {
    std::string_view text;
    FlopsConvention convention;
  };
  static constexpr std::array kNames{
      Name{"hardware-full-recompute", FlopsConvention::HardwareFullRecompute},
      Name{"model", FlopsConvention::Model},
      Name{"hardware-selective-recompute", FlopsConvention::HardwareSelectiveRecompute},
      Name{"model-causal", FlopsConvention::ModelCausal},
      Name{"palm", FlopsConvention::Palm},
  };
  for (const Name& name : kNames) {
    if (name.text == text) {
      return name.convention;
    }
  }
  return std::nullopt;
}

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
    defaults.convention = text_of(*node, "flops_convention");
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
