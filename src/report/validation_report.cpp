// SPDX-License-Identifier: Apache-2.0
#include "report/validation_report.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <cstdint>
#include <utility>

#include "report/json.h"

namespace trainyard {
namespace {

// |ln ratio| as what it means for a time: 0.1 is 10.5 %.
std::string percent(double log_error) {
  return fmt::format("{:.1f} %", 100.0 * std::expm1(log_error));
}

std::string signed_percent(double log_ratio) {
  return fmt::format("{:+.1f} %", 100.0 * std::expm1(log_ratio));
}

Cell error_cell(bool known, double log_error) {
  return known ? Cell{percent(log_error), log_error} : Cell::none();
}

Cell bias_cell(bool known, double log_ratio) {
  return known ? Cell{signed_percent(log_ratio), log_ratio} : Cell::none();
}

Cell count_cell(std::size_t count) {
  return Cell::of(static_cast<std::int64_t>(count));
}

Column column(const char* name, const char* key, Align align = Align::Right) {
  return {.name = name, .key = key, .align = align, .unit = "", .min_width = 0};
}

Cell text_cell(std::string text) {
  return text.empty() ? Cell::none() : Cell::of(std::move(text));
}

std::string worst_text(const CaseResult& one) {
  const ValidationRow& row = one.rows[*one.worst];
  return fmt::format("{} {}", to_string(row.size), signed_percent(row.log_ratio()));
}

std::size_t excluded_rows(const CaseResult& one) {
  std::size_t count = 0;
  for (const ValidationRow& row : one.rows) {
    count += row.excluded.empty() ? 0U : 1U;
  }
  return count;
}

// `for_people`: without columns that only programs want.
Table case_table(const std::vector<CaseResult>& cases, bool for_people) {
  std::vector<Column> columns{column("case", "case", Align::Left),
                              column("class", "class", Align::Left),
                              column("rows", "rows"),
                              column("excluded", "excluded_rows"),
                              column("large", "median_error_large"),
                              column("p90", "p90_error_large"),
                              column("bias", "bias_large"),
                              column("small", "median_error_small"),
                              column("p90", "p90_error_small"),
                              column("bias", "bias_small"),
                              column("noise", "noise_large"),
                              column("worst row", "worst_bytes")};
  if (!for_people) {
    columns.push_back(column("worst", "worst_log_ratio"));
    columns.push_back(column("covered", "covered"));
    columns.push_back(column("not covered", "not_covered", Align::Left));
  }
  Table table(std::move(columns));
  for (const CaseResult& one : cases) {
    const bool covered = one.not_covered.empty();
    const bool large = covered && one.errors.large.rows > 0;
    const bool small = covered && one.errors.small.rows > 0;
    std::vector<Cell> cells{Cell::of(one.item.name),
                            Cell::of(one.item.system_class),
                            count_cell(one.rows.size()),
                            count_cell(excluded_rows(one)),
                            error_cell(large, one.errors.large.median),
                            error_cell(large, one.errors.large.p90),
                            bias_cell(large, one.errors.bias_large),
                            error_cell(small, one.errors.small.median),
                            error_cell(small, one.errors.small.p90),
                            bias_cell(small, one.errors.bias_small),
                            error_cell(one.noise.has_value(), one.noise.value_or(0.0))};
    cells.push_back(covered ? Cell{worst_text(one), one.rows[*one.worst].size.count()}
                            : Cell{"not covered", std::monostate()});
    if (!for_people) {
      cells.push_back(covered ? Cell{"", one.rows[*one.worst].log_ratio()} : Cell::none());
      cells.push_back({"", covered});
      cells.push_back(text_cell(one.not_covered));
    }
    table.add_row(std::move(cells));
  }
  return table;
}

void add_group(Table& table, const GroupResult& group) {
  const bool large = group.large.tables > 0;
  const bool small = group.small.tables > 0;
  table.add_row({Cell::of(group.name),
                 Cell::of(static_cast<std::int64_t>(group.cases)),
                 Cell::of(static_cast<std::int64_t>(group.covered)),
                 count_cell(group.rows.large.rows + group.rows.small.rows),
                 count_cell(group.excluded),
                 error_cell(large, group.large.median),
                 error_cell(large, group.large.p90),
                 bias_cell(large, group.large.bias),
                 error_cell(small, group.small.median),
                 error_cell(small, group.small.p90),
                 bias_cell(small, group.small.bias),
                 error_cell(group.rows.large.rows > 0, group.rows.large.median),
                 error_cell(group.rows.large.rows > 0, group.rows.large.p90),
                 bias_cell(group.rows.large.rows > 0, group.rows.bias_large),
                 error_cell(group.rows.small.rows > 0, group.rows.small.median),
                 error_cell(group.rows.small.rows > 0, group.rows.small.p90),
                 bias_cell(group.rows.small.rows > 0, group.rows.bias_small),
                 error_cell(group.every_row.large.rows > 0, group.every_row.large.median),
                 error_cell(group.every_row.large.rows > 0, group.every_row.large.p90),
                 error_cell(group.every_row.small.rows > 0, group.every_row.small.median),
                 error_cell(group.every_row.small.rows > 0, group.every_row.small.p90)});
}

Table group_table() {
  return Table({column("class", "class", Align::Left),
                column("cases", "cases"),
                column("covered", "covered"),
                column("rows", "rows"),
                column("excluded", "excluded_rows"),
                column("large", "median_error_large"),
                column("p90", "p90_error_large"),
                column("bias", "bias_large"),
                column("small", "median_error_small"),
                column("p90", "p90_error_small"),
                column("bias", "bias_small"),
                column("rows:large", "rows_median_error_large"),
                column("p90", "rows_p90_error_large"),
                column("bias", "rows_bias_large"),
                column("small", "rows_median_error_small"),
                column("p90", "rows_p90_error_small"),
                column("bias", "rows_bias_small"),
                column("every:large", "every_row_median_error_large"),
                column("p90", "every_row_p90_error_large"),
                column("small", "every_row_median_error_small"),
                column("p90", "every_row_p90_error_small")});
}

Table groups(const Validation& validation) {
  Table table = group_table();
  for (const GroupResult& group : validation.classes) {
    add_group(table, group);
  }
  return table;
}

// Reasons, each once, in the order of the rows.
std::string exclusions(const CaseResult& one) {
  std::string text;
  for (const ExcludedRows& rows : one.item.excluded) {
    text += fmt::format("# excluded: {}, {} to {}: {}\n", one.item.name, to_string(rows.from),
                        to_string(rows.to), rows.reason);
  }
  return text;
}

std::string render_for_people(const ValidationReport& report) {
  const Validation& validation = report.validation;
  std::string text = fmt::format(
      "# Simulated by Trainyard ({} runtime) against {} measured tables, {} of them covered.\n"
      "# Errors are exp(|ln(predicted / measured)|) - 1; large: rows of 64 KiB and up; small: the\n"
      "# rest; bias: positive where predictions are too slow; noise: in-place against "
      "out-of-place.\n",
      report.runtime, validation.all.cases, validation.all.covered);
  text += render_text(case_table(validation.cases, true));
  text +=
      "#\n# Classes. First over tables: medians of the tables' medians and 90th percentiles, mean\n"
      "# of their biases; then over rows; then over every row, those that do not count included.\n";
  Table classes = groups(validation);
  add_group(classes, validation.all);
  text += render_text(classes);
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
  json["table"] = std::move(rows);
  return json;
}

std::string render_for_programs(const ValidationReport& report) {
  const Validation& validation = report.validation;
  Table all = group_table();
  add_group(all, validation.all);
  Json summary = to_json(all)[0];
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
  root["classes"] = to_json(groups(validation));
  root["cases"] = std::move(cases);
  return to_text(root);
}

}  // namespace

std::string render(const ValidationReport& report, Format format) {
  switch (format) {
    case Format::Table:
      return render_for_people(report);
    case Format::Csv:
      return render_csv(case_table(report.validation.cases, false));
    case Format::Json:
      break;
  }
  return render_for_programs(report);
}

}  // namespace trainyard
