// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/training_case.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <regex>
#include <utility>

#include "calibration/predict/validation_case.h"
#include "sim/fields.h"

namespace trainyard {
namespace {

std::regex pattern_of(const ConfigNode& node) {
  try {
    return std::regex(node.as_string(), std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& error) {
    node.fail("a regular expression", node.found());
  }
}

constexpr Via kPattern{Text{}, pattern_of};

// A rule of a case: what it says about the rows that hold the expression.
struct CaseRule {
  enum class Kind : std::uint8_t { Model, Correct, Assume, Exclude };
  Kind kind = Kind::Model;
  // Held against the name of the model, or the id of the row.
  std::regex pattern = std::regex("");
  std::optional<ConfigNode> node = {};
  TrainingFields fields = {};
  std::string reason = {};  // Reason of an exclusion.
  bool is_used = false;

  [[nodiscard]] bool fits(Kind wanted, const std::string& text) const {
    return kind == wanted && std::regex_search(text, pattern);
  }
};

using CaseRules = std::vector<CaseRule>;

// Corrections come before assumptions.
void rule_fields(Fields& fields, CaseRules& rules) {
  using Kind = CaseRule::Kind;
  struct ListOfRules {
    std::string_view key;
    Kind kind;
    std::string_view text;
  };
  static constexpr std::array kLists{
      ListOfRules{"models", Kind::Model, "What models of the source are."},
      ListOfRules{"correct", Kind::Correct, "What replaces what the source says."},
      ListOfRules{"assume", Kind::Assume, "What the source does not say."},
      ListOfRules{"exclude_rows", Kind::Exclude, "Rows that are left out."}};
  for (const ListOfRules& list : kLists) {
    const auto row = [&](Fields& inner, CaseRule& rule) {
      rule.kind = list.kind;
      inner.check([&](const ConfigNode& node) { rule.node = node; });
      if (list.kind == Kind::Model) {
        inner.required("name", rule.pattern, kPattern, "An expression that its name holds.");
      } else if (list.kind == Kind::Exclude) {
        inner.required("rows", rule.pattern, kPattern, "An expression that their ids hold.");
      } else {
        inner.optional("rows", rule.pattern, kPattern, "The same of some rows: of all.");
      }
      if (list.kind != Kind::Model) {
        inner.required("reason", rule.reason, Text{}, "Why.");
      }
      if (list.kind != Kind::Exclude) {
        training_fields(inner, rule.fields);
      }
    };
    CaseRules read;
    fields.optional(list.key, read, List{Group{row}}, list.text);
    rules.insert(rules.end(), read.begin(), read.end());
  }
}

// The names of models may be those of other rows of the table.
void check_used(const CaseRules& rules) {
  for (const CaseRule& one : rules) {
    if (one.is_used || one.kind == CaseRule::Kind::Model) {
      continue;
    }
    if (one.kind == CaseRule::Kind::Exclude) {
      one.node->required("rows").fail("a part of the id of a row",
                                      one.node->required("rows").found());
    }
    one.node->fail("expected rows of the case that this is for, found none");
  }
}

const CaseRule* exclusion_of(CaseRules& rules, const std::string& id) {
  const CaseRule* found = nullptr;
  for (CaseRule& one : rules) {
    if (one.fits(CaseRule::Kind::Exclude, id)) {
      one.is_used = true;
      found = found == nullptr ? &one : found;
    }
  }
  return found;
}

// Applies what the case says; returns the keys that it gave.
std::vector<std::string> apply(CaseRules& rules, TrainingRow& row, bool& is_corrected) {
  std::vector<std::string> names;
  for (CaseRule& one : rules) {
    const bool corrects = one.fits(CaseRule::Kind::Correct, row.id);
    if (corrects || one.fits(CaseRule::Kind::Assume, row.id)) {
      one.is_used = true;
      is_corrected = is_corrected || corrects;
      const std::vector<std::string> given =
          corrects ? replace_with(row.fields, one.fields) : fill_missing(row.fields, one.fields);
      names.insert(names.end(), given.begin(), given.end());
    }
  }
  return names;
}

void identify_model(const CaseRules& rules, TrainingRow& row) {
  const std::string name = row.fields.model.name.value_or("");
  const auto rule = std::ranges::find_if(
      rules, [&](const CaseRule& one) { return one.fits(CaseRule::Kind::Model, name); });
  if (rule != rules.end()) {
    fill_missing(row.fields, rule->fields);
  }
}

TrainingCaseRow case_row(CaseRules& rules, TrainingRow row, ModelFolder& models) {
  TrainingCaseRow result{.id = row.id, .release = row.release.value_or("")};
  identify_model(rules, row);
  const bool is_complete = !row.kind && resolve(row, models).run.has_value();
  bool is_corrected = false;
  result.assumed = apply(rules, row, is_corrected);
  if (const CaseRule* exclusion = exclusion_of(rules, row.id)) {
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

std::vector<std::string> read_case_settings(const ConfigNode& node) {
  std::vector<std::string> settings;
  for (const auto& [key, value] : node.entries()) {
    settings.push_back(key + "=" + value.as_string());
  }
  return settings;
}

// Which rows of the table are of the case: those of some GPUs, whose ids hold an expression.
struct CaseRows {
  std::vector<std::string> gpus;  // Empty: all.
  std::regex ids = std::regex("");

  [[nodiscard]] bool hold(const TrainingRow& row) const {
    const std::string gpu = row.fields.machine.gpu.value_or("");
    return (gpus.empty() || std::ranges::find(gpus, gpu) != gpus.end()) &&
           std::regex_search(row.id, ids);
  }
};

void case_rows(Fields& fields, TrainingCase& item, CaseRows& rows, CaseRules& rules,
               const std::filesystem::path& file, const std::filesystem::path& root_folder) {
  const Via table{Text{}, [&](const ConfigNode& node) {
                    return first_file(
                        node,
                        {file.parent_path() / node.as_string(), root_folder / node.as_string()},
                        "a table, relative to the case file or to the project");
                  }};
  const Via of_cluster{
      Text{}, [&](const ConfigNode& node) { return cluster_file(node, file, root_folder); }};
  const Via half{Text{}, [](const ConfigNode& node) {
                   static constexpr std::array<std::string_view, 2> kHalves{"a", "b"};
                   return node.as_choice(kHalves) == 0 ? TrainingHalf::A : TrainingHalf::B;
                 }};
  fields.required("reference", item.reference, table, "The measured table.");
  fields.required("cluster", item.cluster, of_cluster, "A cluster file.");
  fields.optional("set", item.settings, Via{Named{Text{}}, read_case_settings},
                  "Values of the cluster file, as `--set` has them.");
  item.source = item.reference.stem().string();
  fields.optional("source", item.source, Text{}, "Cases of one source are scored as one.");
  fields.optional("generation", item.generation, Text{}, "Generation of GPUs.");
  fields.optional("half", item.half, half, "Fitted on one half, scored on the other.");
  fields.optional("note", item.note, Text{}, "A remark.");
  fields.optional("rows", rows.ids, kPattern, "An expression that ids hold.");
  fields.optional("gpus", rows.gpus, List{Text{}}, "GPUs whose rows are of the case: all.");
  rule_fields(fields, rules);
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

void training_case_fields(Fields& fields) {
  TrainingCase item;
  CaseRows rows;
  CaseRules rules;
  case_rows(fields, item, rows, rules, {}, {});
}

LoadedTrainingCase load_training_case(const std::filesystem::path& file,
                                      const std::filesystem::path& root_folder,
                                      ModelFolder& models) {
  ConfigDocument document = ConfigDocument::load(file);
  const ConfigNode root = document.root();
  LoadedTrainingCase loaded;
  loaded.item.name = file.stem().string();
  loaded.item.generation = "other";
  CaseRows wanted;
  CaseRules rules;
  Fields fields(root);
  case_rows(fields, loaded.item, wanted, rules, file, root_folder);
  document.finish();
  const TrainingTable table = load_training_table(loaded.item.reference);
  for (const TrainingRow& row : table.rows) {
    if (wanted.hold(row)) {
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
