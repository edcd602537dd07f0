// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/training_case.h"

#include <algorithm>
#include <array>
#include <regex>
#include <system_error>
#include <utility>

#include "sim/config.h"

namespace trainyard {
namespace {

std::regex pattern_of(const ConfigNode& node) {
  try {
    return std::regex(node.as_string(), std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    node.fail("a regular expression", node.found());
  }
}

// Rows whose ids hold the expression; every row without it.
std::regex rows_of(const ConfigNode& node) {
  const auto rows = node.optional("rows");
  return rows ? pattern_of(*rows) : std::regex("");
}

struct Assumption {
  std::regex rows;
  TrainingFields fields;
  bool corrects = false;  // Replaces what the source says.
  bool is_used = false;
  ConfigNode node;
};

struct NamedModel {
  std::regex name;
  TrainingFields fields;
};

struct Exclusion {
  std::regex rows;
  std::string reason;
  bool is_used = false;
  ConfigNode node;
};

// The rules that the rows of a case go through.
struct CaseRules {
  std::vector<NamedModel> models;
  std::vector<Assumption> assumptions;
  std::vector<Exclusion> exclusions;
};

void read_assumptions(const ConfigNode& root, std::string_view key, bool corrects,
                      std::vector<Assumption>& all) {
  const auto list = root.optional(key);
  if (!list) {
    return;
  }
  for (const ConfigNode& node : list->items()) {
    node.required("reason").skip();
    all.push_back({.rows = rows_of(node),
                   .fields = read_training_fields(node),
                   .corrects = corrects,
                   .node = node});
  }
}

CaseRules read_rules(const ConfigNode& root) {
  CaseRules rules;
  if (const auto list = root.optional("models")) {
    for (const ConfigNode& node : list->items()) {
      rules.models.push_back(
          {.name = pattern_of(node.required("name")), .fields = read_training_fields(node)});
    }
  }
  read_assumptions(root, "correct", true, rules.assumptions);
  read_assumptions(root, "assume", false, rules.assumptions);
  if (const auto list = root.optional("exclude_rows")) {
    for (const ConfigNode& node : list->items()) {
      rules.exclusions.push_back({.rows = pattern_of(node.required("rows")),
                                  .reason = node.required("reason").as_string(),
                                  .node = node});
    }
  }
  return rules;
}

void check_used(const CaseRules& rules) {
  for (const Assumption& one : rules.assumptions) {
    if (!one.is_used) {
      one.node.fail("expected rows of the case that this is for, found none");
    }
  }
  for (const Exclusion& one : rules.exclusions) {
    if (!one.is_used) {
      one.node.required("rows").fail("a part of the id of a row",
                                     one.node.required("rows").found());
    }
  }
}

const Exclusion* exclusion_of(CaseRules& rules, const std::string& id) {
  const Exclusion* found = nullptr;
  for (Exclusion& one : rules.exclusions) {
    if (std::regex_search(id, one.rows)) {
      one.is_used = true;
      found = found == nullptr ? &one : found;
    }
  }
  return found;
}

// Applies what the case says; returns the keys that it gave.
std::vector<std::string> apply(CaseRules& rules, TrainingRow& row) {
  std::vector<std::string> names;
  for (Assumption& one : rules.assumptions) {
    if (std::regex_search(row.id, one.rows)) {
      one.is_used = true;
      const std::vector<std::string> given = one.corrects ? replace_with(row.fields, one.fields)
                                                          : fill_missing(row.fields, one.fields);
      names.insert(names.end(), given.begin(), given.end());
    }
  }
  return names;
}

void identify_model(const CaseRules& rules, TrainingRow& row) {
  const std::string name = row.fields.model.name.value_or("");
  for (const NamedModel& one : rules.models) {
    if (std::regex_search(name, one.name)) {
      fill_missing(row.fields, one.fields);
      return;
    }
  }
}

TrainingCaseRow case_row(CaseRules& rules, TrainingRow row, ModelFolder& models) {
  TrainingCaseRow result{.id = row.id, .release = row.release.value_or("")};
  identify_model(rules, row);
  const bool is_complete = !row.kind && resolve(row, models).run.has_value();
  result.assumed = apply(rules, row);
  const bool is_corrected = std::ranges::any_of(rules.assumptions, [&](const Assumption& one) {
    return one.corrects && std::regex_search(row.id, one.rows);
  });
  if (const Exclusion* exclusion = exclusion_of(rules, row.id)) {
    result.status = TrainingRowStatus::Excluded;
    result.reason = exclusion->reason;
    return result;
  }
  if (row.kind) {
    result.status = TrainingRowStatus::NoStep;
    result.reason = *row.kind;
    return result;
  }
  TrainingResolution resolution = resolve(row, models);
  result.missing = std::move(resolution.missing);
  result.reason = std::move(resolution.clash);
  result.run = std::move(resolution.run);
  result.status = !result.missing.empty()        ? TrainingRowStatus::Missing
                  : !result.run                  ? TrainingRowStatus::Clash
                  : is_complete && !is_corrected ? TrainingRowStatus::Complete
                                                 : TrainingRowStatus::Assumed;
  return result;
}

std::filesystem::path first_file(const ConfigNode& node,
                                 std::initializer_list<std::filesystem::path> places,
                                 std::string_view expected) {
  for (const std::filesystem::path& place : places) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(place, ignored)) {
      return place.lexically_normal();
    }
  }
  node.fail(expected, node.found());
}

// The GPUs whose rows are of the case; empty: all.
std::vector<std::string> read_gpus(const ConfigNode& root) {
  std::vector<std::string> gpus;
  if (const auto list = root.optional("gpus")) {
    for (const ConfigNode& node : list->items()) {
      gpus.push_back(node.as_string());
    }
  }
  return gpus;
}

std::vector<std::string> read_case_settings(const ConfigNode& root) {
  std::vector<std::string> settings;
  if (const auto node = root.optional("set")) {
    for (const auto& [key, value] : node->entries()) {
      settings.push_back(key + "=" + value.as_string());
    }
  }
  return settings;
}

TrainingCase read_item(const ConfigNode& root, const std::filesystem::path& file,
                       const std::filesystem::path& root_folder) {
  const ConfigNode reference = root.required("reference");
  const ConfigNode cluster = root.required("cluster");
  const std::string name = cluster.as_string();
  TrainingCase item{
      .name = file.stem().string(),
      .source = {},
      .generation = "other",
      .reference = first_file(
          reference,
          {file.parent_path() / reference.as_string(), root_folder / reference.as_string()},
          "a table, relative to the case file or to the project"),
      .cluster = first_file(cluster,
                            {file.parent_path() / name, root_folder / name,
                             root_folder / "configs" / "clusters" / (name + ".yaml")},
                            "a cluster file, relative to the project or to the case file"),
      .settings = read_case_settings(root),
      .note = {}};
  const auto source = root.optional("source");
  item.source = source ? source->as_string() : item.reference.stem().string();
  if (const auto generation = root.optional("generation")) {
    item.generation = generation->as_string();
  }
  if (const auto half = root.optional("half")) {
    static constexpr std::array<std::string_view, 2> kHalves{"a", "b"};
    item.half = half->as_choice(kHalves) == 0 ? TrainingHalf::A : TrainingHalf::B;
  }
  if (const auto note = root.optional("note")) {
    item.note = note->as_string();
  }
  return item;
}

}  // namespace

std::string_view to_string(TrainingRowStatus status) {
  static constexpr std::array<std::string_view, 6> kNames{"complete", "assumed",  "missing",
                                                          "clash",    "excluded", "no step"};
  return kNames.at(static_cast<std::size_t>(status));
}

ClusterOverrides TrainingCase::overrides(const TrainingRun& run) const {
  const int in_node = std::min(run.gpus, run.gpus_per_node);
  return {
      .nodes = (run.gpus + in_node - 1) / in_node, .gpus_per_node = in_node, .settings = settings};
}

LoadedTrainingCase load_training_case(const std::filesystem::path& file,
                                      const std::filesystem::path& root_folder,
                                      ModelFolder& models) {
  ConfigDocument document = ConfigDocument::load(file);
  const ConfigNode root = document.root();
  LoadedTrainingCase loaded{.item = read_item(root, file, root_folder), .rows = {}};
  const std::regex rows = rows_of(root);
  const std::vector<std::string> gpus = read_gpus(root);
  CaseRules rules = read_rules(root);
  document.finish();
  const TrainingTable table = load_training_table(loaded.item.reference);
  for (const TrainingRow& row : table.rows) {
    const std::string gpu = row.fields.machine.gpu.value_or("");
    const bool is_wanted = gpus.empty() || std::ranges::find(gpus, gpu) != gpus.end();
    if (is_wanted && std::regex_search(row.id, rows)) {
      loaded.rows.push_back(case_row(rules, row, models));
    }
  }
  if (loaded.rows.empty()) {
    root.fail("expected rows of the table, found none");
  }
  check_used(rules);
  return loaded;
}

}  // namespace trainyard
