// SPDX-License-Identifier: Apache-2.0
#include "report/accuracy/validation_report.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <utility>

#include "calibration/fit/intervals.h"
#include "report/accuracy/ledger_report.h"
#include "report/accuracy/refit_report.h"
#include "report/formats/json.h"
#include "report/formats/log_percent.h"

namespace trainyard {
namespace {

Cell text_cell(std::string text) {
  return text.empty() ? Cell::none() : Cell::of(std::move(text));
}

std::string worst_text(const CaseResult& one) {
  const ValidationRow& row = one.rows[*one.worst];
  return fmt::format("{} {}", to_string(row.size), signed_percent_of_log(row.log_ratio()));
}

std::size_t excluded_rows(const CaseResult& one) {
  std::size_t count = 0;
  for (const ValidationRow& row : one.rows) {
    count += row.excluded.empty() ? 0U : 1U;
  }
  return count;
}

// `for_people`: without columns that only programs want.
Table case_table(const std::vector<CaseResult>& cases, bool for_people,
                 const Refit* refit = nullptr) {
  std::vector<Column> columns{
      column("case", "case", Align::Left),   column("class", "class", Align::Left),
      column("rows", "row_count"),           column("excluded", "excluded_rows"),
      column("large", "median_error_large"), column("p90", "p90_error_large"),
      column("bias", "bias_large"),          column("small", "median_error_small"),
      column("p90", "p90_error_small"),      column("bias", "bias_small"),
      column("noise", "noise_large"),        column("worst row", "worst_bytes")};
  if (!for_people) {
    columns.push_back(column("worst", "worst_log_ratio"));
    columns.push_back(column("covered", "covered"));
    columns.push_back(column("scored", "scored"));
    columns.push_back(column("not covered", "not_covered", Align::Left));
  }
  if (refit != nullptr) {
    add_refit_columns(*refit, columns);
  }
  Table table(std::move(columns));
  for (std::size_t index = 0; index < cases.size(); ++index) {
    const CaseResult& one = cases[index];
    const bool covered = one.not_covered.empty();
    const bool scored = one.worst.has_value();
    const bool large = scored && one.errors.large.rows > 0;
    const bool small = scored && one.errors.small.rows > 0;
    std::vector<Cell> cells{Cell::of(one.item.name),
                            Cell::of(one.item.system_class),
                            Cell::count(one.rows.size()),
                            Cell::count(excluded_rows(one)),
                            error_cell(large, one.errors.large.median),
                            error_cell(large, one.errors.large.p90),
                            bias_cell(large, one.errors.bias_large),
                            error_cell(small, one.errors.small.median),
                            error_cell(small, one.errors.small.p90),
                            bias_cell(small, one.errors.bias_small),
                            error_cell(one.noise.has_value(), one.noise.value_or(0.0))};
    cells.push_back(scored ? Cell{worst_text(one), one.rows[*one.worst].size.count()}
                           : Cell{covered ? "not scored" : "not covered", std::monostate()});
    if (!for_people) {
      cells.push_back(scored ? Cell{"", one.rows[*one.worst].log_ratio()} : Cell::none());
      cells.push_back({"", covered});
      cells.push_back({"", scored});
      cells.push_back(text_cell(one.not_covered));
    }
    if (refit != nullptr) {
      add_refit_cells(*refit, index, cells);
    }
    table.add_row(std::move(cells));
  }
  return table;
}

// The figures of a group: over tables, over the rows that count, over every row.
enum class Over { Tables, Rows, EveryRow };

struct Figures {
  bool known = false;
  double median = 0.0;
  double p90 = 0.0;
  double bias = 0.0;
};

Figures figures_of(const GroupResult& group, Over over, bool large) {
  if (over == Over::Tables) {
    const TableFigures& tables = large ? group.large : group.small;
    return {.known = tables.tables > 0,
            .median = tables.median,
            .p90 = tables.p90,
            .bias = tables.bias};
  }
  const ErrorFigures& rows = over == Over::Rows ? group.rows : group.every_row;
  const RegimeError& regime = large ? rows.large : rows.small;
  return {.known = regime.rows > 0,
          .median = regime.median,
          .p90 = regime.p90,
          .bias = large ? rows.bias_large : rows.bias_small};
}

struct FiguresColumns {
  Over over;
  bool large;
  const char* name;
  std::array<const char*, 3> keys;  // Median, 90th percentile, bias.
  bool for_people;                  // The first two are; bias only over tables.
};

constexpr std::array kFiguresColumns{
    FiguresColumns{
        Over::Tables, true, "large", {"median_error_large", "p90_error_large", "bias_large"}, true},
    FiguresColumns{Over::Tables,
                   false,
                   "small",
                   {"median_error_small", "p90_error_small", "bias_small"},
                   true},
    FiguresColumns{Over::Rows,
                   true,
                   "rows: large",
                   {"rows_median_error_large", "rows_p90_error_large", "rows_bias_large"},
                   true},
    FiguresColumns{Over::Rows,
                   false,
                   "small",
                   {"rows_median_error_small", "rows_p90_error_small", "rows_bias_small"},
                   true},
    FiguresColumns{
        Over::EveryRow,
        true,
        "every row: large",
        {"every_row_median_error_large", "every_row_p90_error_large", "every_row_bias_large"},
        true},
    FiguresColumns{
        Over::EveryRow,
        false,
        "small",
        {"every_row_median_error_small", "every_row_p90_error_small", "every_row_bias_small"},
        false},
};

Table group_table(std::span<const GroupResult> groups, bool for_people) {
  std::vector<Column> columns{
      column("class", "class", Align::Left), column("cases", "cases"),
      column("covered", "covered"),          column("scored", "scored"),
      column("rows", "row_count"),           column("excluded", "excluded_rows")};
  const auto shown = [&](const FiguresColumns& one) { return one.for_people || !for_people; };
  const auto with_bias = [&](const FiguresColumns& one) {
    return one.over == Over::Tables || !for_people;
  };
  for (const FiguresColumns& one : kFiguresColumns) {
    if (shown(one)) {
      columns.push_back(column(one.name, one.keys[0]));
      columns.push_back(column("p90", one.keys[1]));
    }
    if (shown(one) && with_bias(one)) {
      columns.push_back(column("bias", one.keys[2]));
    }
  }
  Table table(std::move(columns));
  for (const GroupResult& group : groups) {
    std::vector<Cell> cells{Cell::of(group.name),
                            Cell::count(group.cases),
                            Cell::count(group.covered),
                            Cell::count(group.scored),
                            Cell::count(group.rows.large.rows + group.rows.small.rows),
                            Cell::count(group.excluded)};
    for (const FiguresColumns& one : kFiguresColumns) {
      const Figures figures = figures_of(group, one.over, one.large);
      if (shown(one)) {
        cells.push_back(error_cell(figures.known, figures.median));
        cells.push_back(error_cell(figures.known, figures.p90));
      }
      if (shown(one) && with_bias(one)) {
        cells.push_back(bias_cell(figures.known, figures.bias));
      }
    }
    table.add_row(std::move(cells));
  }
  return table;
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
    columns.push_back({.name = range_name(range), .key = "", .unit = "", .min_width = 0});
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

// Reasons, each once, in the order of the rows.
std::string exclusions(const CaseResult& one) {
  std::string text;
  for (const ExcludedRows& rows : one.item.excluded) {
    text += fmt::format("# excluded: {}, {}: {}\n", one.item.name, rows.sizes(), rows.reason);
  }
  return text;
}

std::string validation_text(const ValidationReport& report) {
  const Validation& validation = report.validation;
  std::string text = fmt::format(
      "# Simulated by Trainyard ({} runtime) against {} measured tables: {} covered, {} scored.\n"
      "# Errors are exp(|ln(predicted / measured)|) - 1; large: rows of 64 KiB and up; small: the\n"
      "# rest; bias: positive where predictions are too slow; noise: in-place against "
      "out-of-place.\n",
      report.runtime, validation.all.cases, validation.all.covered, validation.all.scored);
  text += render_text(case_table(validation.cases, true));
  text +=
      "#\n# Classes. First over tables: medians of the tables' medians and 90th percentiles, mean\n"
      "# of their biases; then over rows; then over every row, those that do not count included.\n";
  std::vector<GroupResult> groups = validation.classes;
  groups.push_back(validation.all);
  text += render_text(group_table(groups, true));
  text += "#\n# By size, over rows: median error and, in brackets, bias, in per cent.\n";
  text += render_text(size_table(groups));
  if (report.refit) {
    text += refit_text(validation, *report.refit);
  }
  if (!report.ledger.empty()) {
    text += "#\n# Intervals of 90 % that other systems give, and how many rows lie in them.\n";
    text += ledger_summary(report.ledger);
  }
  for (const CaseResult& one : validation.cases) {
    if (!one.not_covered.empty()) {
      text += fmt::format("# not covered: {}: {}\n", one.item.name, one.not_covered);
    }
  }
  for (const CaseResult& one : validation.cases) {
    text += exclusions(one);
  }
  for (const std::string& note : report.notes) {
    text += "# note: " + note + "\n";
  }
  for (const std::string& line : report.exceeded) {
    text += "# budget exceeded: " + line + "\n";
  }
  return text;
}

Json json_of(const GroupResult& group) {
  Json json = to_json(group_table(std::span(&group, 1), false))[0];
  Json ranges = Json::array();
  for (const SizeRange& range : group.by_size) {
    Json one;
    one["from_bytes"] = range.from.count();
    one["row_count"] = range.error.rows;
    one["median_error"] = range.error.rows > 0 ? Json(range.error.median) : Json(nullptr);
    one["p90_error"] = range.error.rows > 0 ? Json(range.error.p90) : Json(nullptr);
    one["bias"] = range.error.rows > 0 ? Json(range.bias) : Json(nullptr);
    ranges.push_back(std::move(one));
  }
  json["by_size"] = std::move(ranges);
  return json;
}

Json json_of(const ValidationRow& row) {
  Json json;
  json["bytes"] = row.size.count();
  json["measured_us"] = row.measured.microseconds();
  json["predicted_us"] = row.predicted ? Json(row.predicted->time.microseconds()) : Json(nullptr);
  json["log_ratio"] = row.predicted ? Json(row.log_ratio()) : Json(nullptr);
  json["how"] = row.predicted ? row.predicted->how : "";
  json["excluded"] = !row.excluded.empty();
  json["reason"] = row.excluded.empty() ? Json(nullptr) : Json(row.excluded);
  json["in_place"] = row.in_place;
  json["columns_apart"] = row.columns_apart;
  json["stands_for"] = row.stands_for;
  return json;
}

Json json_of(const CaseResult& one, Json json) {
  json["system"] = one.item.system;
  json["operation"] = to_string(one.operation);
  json["ranks"] = one.item.ranks;
  json["nodes"] = one.item.nodes;
  json["gpus_per_node"] = one.item.gpus_per_node;
  json["gpus_per_process"] = one.item.gpus_per_process;
  json["cuda_graph"] = one.item.cuda_graph;
  json["reference"] = one.item.reference.string();
  json["cluster"] = one.item.cluster.string();
  Json rows = Json::array();
  for (const ValidationRow& row : one.rows) {
    rows.push_back(json_of(row));
  }
  json["rows"] = std::move(rows);
  return json;
}

std::string validation_json(const ValidationReport& report) {
  const Validation& validation = report.validation;
  Json summary = json_of(validation.all);
  summary.erase("class");
  summary["runtime"] = report.runtime;
  summary["budgets_exceeded"] = report.exceeded;
  summary["notes"] = report.notes;
  Json cases = to_json(case_table(validation.cases, false));
  for (std::size_t index = 0; index < validation.cases.size(); ++index) {
    cases[index] = json_of(validation.cases[index], cases[index]);
  }
  Json root;
  root["summary"] = std::move(summary);
  root["classes"] = Json::array();
  for (const GroupResult& group : validation.classes) {
    root["classes"].push_back(json_of(group));
  }
  root["cases"] = std::move(cases);
  if (report.refit) {
    add_refit(validation, *report.refit, root);
  }
  if (!report.ledger.empty()) {
    for (const auto& [name, coverage] : coverage_of(report.ledger)) {
      root["summary"]["interval_coverage"][name] = coverage.share();
    }
  }
  return to_text(root);
}

}  // namespace

std::string render(const ValidationReport& report, Format format) {
  switch (format) {
    case Format::Table:
      return validation_text(report);
    case Format::Csv:
      return render_csv(
          case_table(report.validation.cases, false, report.refit ? &*report.refit : nullptr));
    case Format::Json:
      break;
  }
  return validation_json(report);
}

}  // namespace trainyard
