// SPDX-License-Identifier: Apache-2.0
#include "report/accuracy/validation_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "calibration/fit/intervals.h"
#include "report/accuracy/ledger_report.h"
#include "report/formats/json.h"
#include "report/formats/log_percent.h"
#include "sim/statistics.h"

namespace trainyard {
namespace {

// --- Sets of constants that predicted the same cases -------------------------------------------

struct ConstantSet {
  std::string name;  // For people.
  std::string key;
  const Validation* validation = nullptr;
};

// The profile, the fit to all tables, and the fits without the system that is predicted.
std::vector<ConstantSet> sets_of(const ValidationReport& report) {
  std::vector<ConstantSet> sets{{"profile", "profile", &report.validation}};
  if (report.refit) {
    sets.push_back({"fitted", "refit", &report.refit->fitted});
    if (report.refit->left_out) {
      sets.push_back({"left out", "leave_one_out", &*report.refit->left_out});
    }
  }
  return sets;
}

// A group with one of the sets.
struct GroupRow {
  std::string constants;
  GroupResult group;
};

GroupResult of_case(const CaseResult& one) {
  const std::array<const CaseResult*, 1> alone{&one};
  return group_of("", alone);
}

// The cases of each system together, by name.
std::map<std::string, GroupResult> by_system(const Validation& validation) {
  std::map<std::string, std::vector<const CaseResult*>> members;
  for (const CaseResult& one : validation.cases) {
    members[one.item.system].push_back(&one);
  }
  std::map<std::string, GroupResult> groups;
  for (const auto& [name, cases] : members) {
    groups.emplace(name, group_of(name, cases));
  }
  return groups;
}

// All together without the tables that stand alone with one of their constants.
GroupResult without_alone(const Refit& refit) {
  std::set<std::string> alone;
  for (const LeftOut& one : refit.systems) {
    alone.insert(one.alone.begin(), one.alone.end());
  }
  std::vector<const CaseResult*> cases;
  for (const CaseResult& one : refit.left_out->cases) {
    if (!alone.contains(one.item.name)) {
      cases.push_back(&one);
    }
  }
  return group_of("sharing all constants", cases);
}

// --- Errors ------------------------------------------------------------------------------------

// Median, 90th percentile and bias of large rows or of small ones.
struct Figures {
  bool is_known = false;
  double median = 0.0;
  double p90 = 0.0;
  double bias = 0.0;
};

Figures figures_of(const TableFigures& tables) {
  return {tables.tables > 0, tables.median, tables.p90, tables.bias};
}

Figures figures_of(const ErrorFigures& rows, bool is_large) {
  const RegimeError& regime = is_large ? rows.large : rows.small;
  return {regime.rows > 0, regime.median, regime.p90, is_large ? rows.bias_large : rows.bias_small};
}

// `key`: "large"; `prefix` stands before its keys.
void add_figures(const Figures& figures, const std::string& name, const std::string& prefix,
                 const std::string& key, std::vector<Field>& fields) {
  fields.push_back(
      {column(name, prefix + "median_error_" + key), error_cell(figures.is_known, figures.median)});
  fields.push_back(
      {column("p90", prefix + "p90_error_" + key), error_cell(figures.is_known, figures.p90)});
  fields.push_back(
      {column("bias", prefix + "bias_" + key), bias_cell(figures.is_known, figures.bias)});
}

std::string worst_text(const CaseResult& one) {
  const ValidationRow& row = one.rows[*one.worst];
  return fmt::format("{} {}", to_string(row.size), signed_percent_of_log(row.log_ratio()));
}

std::vector<Field> fields_of(const CaseResult& one) {
  const bool is_covered = one.not_covered.empty();
  const bool is_scored = one.worst.has_value();
  const auto excluded = std::count_if(one.rows.begin(), one.rows.end(),
                                      [](const auto& row) { return !row.excluded.empty(); });
  const ErrorFigures errors = is_scored ? one.errors : ErrorFigures();
  std::vector<Field> fields{
      {column("case", "case", Align::Left), Cell::of(one.item.name)},
      {column("class", "class", Align::Left), Cell::of(one.item.system_class)},
      {column("rows", "row_count"), Cell::count(one.rows.size())},
      {column("excluded", "excluded_rows"), Cell::count(excluded)}};
  add_figures(figures_of(errors, true), "large", "", "large", fields);
  add_figures(figures_of(errors, false), "small", "", "small", fields);
  fields.push_back(
      {column("noise", "noise_large"), error_cell(one.noise.has_value(), one.noise.value_or(0.0))});
  fields.push_back({column("worst row", "worst_bytes"),
                    is_scored ? Cell{worst_text(one), one.rows[*one.worst].size.count()}
                              : Cell{is_covered ? "not scored" : "not covered", std::monostate()}});
  const auto add = [&](const char* key, Cell cell) {
    fields.push_back({{.name = "", .key = key, .shown = Shown::Programs}, std::move(cell)});
  };
  add("worst_log_ratio", is_scored ? Cell{"", one.rows[*one.worst].log_ratio()} : Cell::none());
  add("covered", Cell::yes_no(is_covered));
  add("scored", Cell::yes_no(is_scored));
  add("not_covered", Cell::any(one.not_covered));
  return fields;
}

// The sets after the first have columns for programs.
Table case_table(const std::vector<ConstantSet>& sets) {
  std::vector<std::size_t> indices(sets.front().validation->cases.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  return table_of(indices, [&](std::size_t index) {
    std::vector<Field> fields = fields_of(sets.front().validation->cases.at(index));
    for (const ConstantSet& set : std::span(sets).subspan(1)) {
      const GroupResult group = of_case(set.validation->cases[index]);
      const auto add = [&](const char* what, Cell cell) {
        fields.push_back(
            {{.name = "", .key = set.key + what, .shown = Shown::Csv}, std::move(cell)});
      };
      add("_median_error_large", error_cell(group.large.tables > 0, group.large.median));
      add("_bias_large", bias_cell(group.large.tables > 0, group.large.bias));
      add("_median_error_small", error_cell(group.small.tables > 0, group.small.median));
    }
    return fields;
  });
}

Table group_table(const std::vector<GroupRow>& rows) {
  const bool has_sets = std::any_of(rows.begin(), rows.end(), [&](const GroupRow& row) {
    return row.constants != rows.front().constants;
  });
  return table_of(rows, [&](const GroupRow& row) {
    const GroupResult& group = row.group;
    std::vector<Field> fields{
        {column("class", "class", Align::Left), Cell::of(group.name)},
        {{.name = "constants",
          .key = "",
          .align = Align::Left,
          .shown = has_sets ? Shown::Text : Shown::Page},
         Cell::of(row.constants)},
        {column("cases", "cases"), Cell::count(group.cases)},
        {column("covered", "covered"), Cell::count(group.covered)},
        {column("scored", "scored"), Cell::count(group.scored)},
        {column("rows", "row_count"), Cell::count(group.rows.large.rows + group.rows.small.rows)},
        {column("excluded", "excluded_rows"), Cell::count(group.excluded)}};
    add_figures(figures_of(group.large), "large", "", "large", fields);
    add_figures(figures_of(group.small), "small", "", "small", fields);
    const auto add = [&](const ErrorFigures& errors, const std::string& name,
                         const std::string& prefix, Shown of_small) {
      add_figures(figures_of(errors, true), name, prefix, "large", fields);
      fields.back().column.shown = Shown::Programs;
      add_figures(figures_of(errors, false), "small", prefix, "small", fields);
      fields.back().column.shown = Shown::Programs;
      for (Field& field : std::span(fields).last(3).first(2)) {
        field.column.shown = of_small;
      }
    };
    add(group.rows, "rows: large", "rows_", Shown::All);
    add(group.every_row, "every row: large", "every_row_", Shown::Programs);
    return fields;
  });
}

// "< 1KiB", "1KiB to 64KiB", ..., "256MiB and up".
std::string range_name(std::size_t range) {
  if (range == 0) {
    return "< " + to_string(kSizeRanges[1]);
  }
  return range + 1 < kSizeRanges.size() ? fmt::format("{} to {}", to_string(kSizeRanges[range]),
                                                      to_string(kSizeRanges[range + 1]))
                                        : to_string(kSizeRanges[range]) + " and up";
}

// Median error and bias of each range of sizes, over rows.
Table size_table(std::span<const GroupResult> groups) {
  std::vector<Column> columns{column("class", "class", Align::Left)};
  for (std::size_t range = 0; range < kSizeRanges.size(); ++range) {
    columns.push_back(column(range_name(range), ""));
  }
  Table table(std::move(columns));
  for (const GroupResult& group : groups) {
    std::vector<Cell> cells{Cell::of(group.name)};
    for (const SizeRange& range : group.by_size) {
      cells.push_back(range.error.rows == 0 ? Cell::none()
                                            : Cell::of(fmt::format("{:.1f} ({:+.1f})",
                                                                   log_percent(range.error.median),
                                                                   log_percent(range.bias))));
    }
    table.add_row(std::move(cells));
  }
  return table;
}

// --- Fitted constants --------------------------------------------------------------------------

// Returns its 90 % interval, within the limits that it is given.
std::array<double, 2> interval(const ProfileConstant& constant, const FittedParameter& fitted) {
  const double half = kNormal90Percent * fitted.standard_error;
  return {std::max(constant.min, std::exp(fitted.value - half)),
          std::min(constant.max, std::exp(fitted.value + half))};
}

Table fitted_table(const Refit& refit) {
  static constexpr std::array kUnits{"s", "bit/s", "share"};
  const auto for_programs = [](const char* key) {
    return Column{.name = "", .key = key, .shown = Shown::Programs};
  };
  Table table({column("constant", "name", Align::Left), for_programs("unit"),
               column("profile", "in_profile"), column("assumed", "assumed"),
               column("fitted", "fitted"), for_programs("standard_error_log"),
               column("90 % within", "interval_90", Align::Left), for_programs("at_limit"),
               column("rows", "rows"), column("systems", "systems")});
  for (std::size_t k = 0; k < refit.constants.size(); ++k) {
    const ProfileConstant& constant = refit.constants[k];
    const FittedParameter& fitted = refit.fit.parameters[k];
    const auto text = [&](double value) { return constant_text(constant.kind, value); };
    const double value = std::exp(fitted.value);
    const bool at_limit = value > 0.999 * constant.max || value < 1.001 * constant.min;
    const auto [low, high] = interval(constant, fitted);
    table.add_row({Cell::of(constant.name),
                   Cell::of(kUnits[static_cast<std::size_t>(constant.kind)]),
                   {text(constant.in_file), constant.in_file},
                   {text(constant.start), constant.start},
                   {text(value) + (at_limit ? "!" : ""), value},
                   {"", fitted.standard_error},
                   Cell::of(fmt::format("{} to {}", text(low), text(high))),
                   Cell::yes_no(at_limit),
                   Cell::count(fitted.rows),
                   Cell::count(fitted.systems.size())});
  }
  return table;
}

std::vector<std::string> unseen_by_others(const Refit& refit, const LeftOut& system) {
  std::vector<std::string> names;
  for (const std::size_t k : system.unseen) {
    names.push_back(refit.constants[k].name);
  }
  return names;
}

// --- JSON --------------------------------------------------------------------------------------

Json validation_json(const GroupResult& group) {
  Json json = to_json(group_table({{.constants = "", .group = group}}))[0];
  json["by_size"] = Json::array();
  for (const SizeRange& range : group.by_size) {
    const auto known = [&](double value) { return range.error.rows > 0 ? Json(value) : Json(); };
    json["by_size"].push_back({{"from_bytes", range.from.count()},
                               {"row_count", range.error.rows},
                               {"median_error", known(range.error.median)},
                               {"p90_error", known(range.error.p90)},
                               {"bias", known(range.bias)}});
  }
  return json;
}

Json validation_json(const ValidationRow& row) {
  const auto& predicted = row.predicted;
  return {{"bytes", row.size.count()},
          {"measured_us", row.measured.microseconds()},
          {"predicted_us", predicted ? Json(predicted->time.microseconds()) : Json()},
          {"log_ratio", predicted ? Json(row.log_ratio()) : Json()},
          {"how", predicted ? predicted->how : ""},
          {"excluded", !row.excluded.empty()},
          {"reason", row.excluded.empty() ? Json() : Json(row.excluded)},
          {"in_place", row.in_place},
          {"columns_apart", row.columns_apart},
          {"stands_for", row.stands_for}};
}

Json cases_json(const std::vector<ConstantSet>& sets) {
  Json cases = to_json(case_table(sets));
  for (std::size_t index = 0; index < cases.size(); ++index) {
    const CaseResult& one = sets.front().validation->cases[index];
    cases[index].update(Json{{"system", one.item.system},
                             {"operation", to_string(one.operation)},
                             {"ranks", one.item.ranks},
                             {"nodes", one.item.nodes},
                             {"gpus_per_node", one.item.gpus_per_node},
                             {"gpus_per_process", one.item.gpus_per_process},
                             {"cuda_graph", one.item.cuda_graph},
                             {"reference", one.item.reference.string()},
                             {"cluster", one.item.cluster.string()},
                             {"rows", Json::array()}});
    for (const ValidationRow& row : one.rows) {
      cases[index]["rows"].push_back(validation_json(row));
    }
    for (const ConstantSet& set : std::span(sets).subspan(1)) {
      cases[index][set.key] = validation_json(of_case(set.validation->cases[index]));
    }
  }
  return cases;
}

Json summary_json(const ValidationReport& report, const std::vector<ConstantSet>& sets) {
  Json summary = validation_json(report.validation.all);
  summary.erase("class");
  summary.update(Json{
      {"runtime", report.runtime}, {"budgets_exceeded", report.exceeded}, {"notes", report.notes}});
  for (const ConstantSet& set : std::span(sets).subspan(1)) {
    summary[set.key] = validation_json(set.validation->all);
  }
  if (report.refit) {
    summary["refit"]["converged"] = report.refit->fit.converged;
  }
  if (report.refit && report.refit->left_out) {
    summary["leave_one_out"]["systems"] = report.refit->systems.size();
    summary["leave_one_out"]["of_shared_constants"] = validation_json(without_alone(*report.refit));
  }
  if (!report.ledger.empty()) {
    for (const auto& [name, coverage] : coverage_of(report.ledger)) {
      summary["interval_coverage"][name] = coverage.share();
    }
  }
  return summary;
}

// --- The document ------------------------------------------------------------------------------

void add_groups(const ValidationReport& report, const std::vector<ConstantSet>& sets,
                Document& document) {
  const Validation& validation = report.validation;
  std::vector<GroupRow> rows;
  Json classes = Json::array();
  for (std::size_t index = 0; index < validation.classes.size(); ++index) {
    classes.push_back(validation_json(validation.classes[index]));
    for (const ConstantSet& set : sets) {
      const GroupResult& group = set.validation->classes[index];
      rows.push_back({set.name, group});
      if (set.validation != &validation) {
        classes.back()[set.key] = validation_json(group);
      }
    }
  }
  for (const ConstantSet& set : sets) {
    rows.push_back({set.name, set.validation->all});
  }
  if (report.refit && report.refit->left_out) {
    rows.push_back({"left out", without_alone(*report.refit)});
  }
  document.add_detail("classes", std::move(classes));
  document.add_table(
      "Classes. First over tables: medians of the tables' medians and 90th percentiles, mean of "
      "their biases; then over rows; then over every row, those that do not count included.",
      group_table(rows));
  std::vector<GroupResult> groups = validation.classes;
  groups.push_back(validation.all);
  document.add_table("By size, over rows: median error and, in brackets, bias, in per cent.",
                     size_table(groups));
}

void add_systems(const Refit& refit, const std::vector<ConstantSet>& sets, Document& document) {
  std::vector<GroupRow> rows;
  Json systems = Json::array();
  std::vector<std::map<std::string, GroupResult>> groups;
  for (const ConstantSet& set : sets) {
    groups.push_back(by_system(*set.validation));
  }
  for (const LeftOut& one : refit.systems) {
    Json json{{"system", one.system}};
    for (std::size_t index = 0; index < sets.size(); ++index) {
      rows.push_back({sets[index].name, groups[index].at(one.system)});
      json[sets[index].key] = validation_json(rows.back().group);
    }
    const std::vector<std::string> unseen = unseen_by_others(refit, one);
    json.update(Json{{"converged", one.fit.converged}, {"unseen", unseen}, {"alone", one.alone}});
    systems.push_back(std::move(json));
    if (!unseen.empty()) {
      document.notes.push_back(
          fmt::format("only {} shows: {}", one.system, fmt::join(unseen, ", ")));
    }
    if (!one.fit.converged) {
      document.notes.push_back(fmt::format("the fit without {} has not converged", one.system));
    }
  }
  document.add_detail("systems", std::move(systems));
  document.add_table("Systems, each left out in turn.", group_table(rows));
}

void add_constants(const Refit& refit, Document& document) {
  const Table table = fitted_table(refit);
  Json constants = to_json(table);
  for (std::size_t k = 0; k < refit.constants.size(); ++k) {
    constants[k]["interval_90"] = interval(refit.constants[k], refit.fit.parameters[k]);
    constants[k]["systems"] = refit.fit.parameters[k].systems;
  }
  document.add_detail("constants", std::move(constants));
  const std::string title = fmt::format(
      "Constants fitted to all tables ({} rounds{}). rows, systems: those that move by a twentieth "
      "or more of what the constant does; \"!\": at its limit.",
      refit.fit.rounds, refit.fit.converged ? "" : ", not converged");
  document.add_table(title, table);
}

void add_notes(const ValidationReport& report, Document& document) {
  for (const CaseResult& one : report.validation.cases) {
    if (!one.not_covered.empty()) {
      document.notes.push_back(fmt::format("not covered: {}: {}", one.item.name, one.not_covered));
    }
  }
  for (const CaseResult& one : report.validation.cases) {
    for (const ExcludedRows& rows : one.item.excluded) {
      document.notes.push_back(
          fmt::format("excluded: {}, {}: {}", one.item.name, rows.sizes(), rows.reason));
    }
  }
  document.notes.insert(document.notes.end(), report.notes.begin(), report.notes.end());
  for (const std::string& line : report.exceeded) {
    document.notes.push_back("budget exceeded: " + line);
  }
}

}  // namespace

Document document_of(const ValidationReport& report) {
  const GroupResult& all = report.validation.all;
  const std::vector<ConstantSet> sets = sets_of(report);
  Document document{
      .heading = {
          fmt::format("Simulated by Trainyard ({} runtime) against {} measured tables: {} covered, "
                      "{} scored.",
                      report.runtime, all.cases, all.covered, all.scored),
          "Errors are exp(|ln(predicted / measured)|) - 1; large: rows of 64 KiB and up; small: "
          "the",
          "rest; bias: positive where predictions are too slow; noise: in-place against "
          "out-of-place."}};
  document.add_detail("summary", summary_json(report, sets));
  document.add(
      NamedTable{.key = "", .table = case_table(sets), .shown = Shown::People | Shown::Csv});
  add_groups(report, sets, document);
  document.add_detail("cases", cases_json(sets));
  if (report.refit && report.refit->left_out) {
    add_systems(*report.refit, sets, document);
  }
  if (report.refit) {
    add_constants(*report.refit, document);
  }
  if (!report.ledger.empty()) {
    document.add_table("Intervals of 90 % that other systems give, and how many rows lie in them.",
                       coverage_table(report.ledger));
  }
  add_notes(report, document);
  return document;
}

}  // namespace trainyard
