// SPDX-License-Identifier: Apache-2.0
#include "cli/sweep/sweep_html.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/common/html_output.h"
#include "topology/lint/staging.h"

namespace trainyard {
namespace {

// More would be a page of many megabytes; --output has all.
constexpr std::size_t kMaxRows = 2'000;

// Lists the options that all points share, and the values of those that vary.
HtmlTable inputs_of(const SweepSpec& spec) {
  Table table({{.name = "option", .key = "option", .align = Align::Left},
               {.name = "value", .key = "value", .align = Align::Left}});
  table.add_row({Cell::of("command"), Cell::of("trainyard " + spec.command)});
  for (const auto& [name, values] : spec.options) {
    table.add_row({Cell::of(name), Cell::of(fmt::format("{}", fmt::join(values, ", ")))});
  }
  for (const std::vector<SweepAxis>& group : spec.groups) {
    for (const SweepAxis& axis : group) {
      table.add_row(
          {Cell::of(axis.key), Cell::of(fmt::format("{}{}", fmt::join(axis.values, ", "),
                                                    group.size() > 1 ? " (together)" : ""))});
    }
  }
  return {.title = "Inputs",
          .note =
              "Options that all points share, then those that vary. trainyard sweep FILE "
              "--list prints the command of each point; run with --report, where it has that "
              "option, it shows its inputs, its estimates and their sources.",
          .table = std::move(table)};
}

// Without columns that are the same in all rows.
HtmlTable results_of(const Table& table) {
  const auto& rows = table.rows();
  std::vector<std::size_t> shown;
  for (std::size_t column = 0; column < table.columns().size(); ++column) {
    const bool changes = std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
      return row[column].value != rows.front()[column].value;
    });
    if (changes || rows.size() == 1) {
      shown.push_back(column);
    }
  }
  std::vector<Column> columns;
  for (const std::size_t column : shown) {
    Column made = table.columns()[column];
    const bool is_text = std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
      return std::holds_alternative<std::string>(row[column].value);
    });
    made.align = is_text ? Align::Left : Align::Right;
    columns.push_back(std::move(made));
  }
  Table made(std::move(columns));
  for (std::size_t row = 0; row < std::min(rows.size(), kMaxRows); ++row) {
    std::vector<Cell> cells;
    for (const std::size_t column : shown) {
      cells.push_back(rows[row][column]);
    }
    made.add_row(std::move(cells));
  }
  return {.title = "Results",
          .note = fmt::format("Columns that differ between rows{}.",
                              rows.size() > kMaxRows
                                  ? fmt::format("; the first {} of {} rows", kMaxRows, rows.size())
                                  : ""),
          .table = std::move(made)};
}

}  // namespace

HtmlReport sweep_html(const SweepSpec& spec, const Table& table,
                      const std::optional<Cluster>& cluster) {
  const auto failed = static_cast<std::size_t>(
      std::count_if(table.rows().begin(), table.rows().end(), [](const std::vector<Cell>& row) {
        return !std::holds_alternative<std::monostate>(row.back().value);
      }));
  HtmlReport html{
      .title = spec.title,
      .subtitle = fmt::format("A sweep of trainyard {}, predicted by Trainyard", spec.command),
      .summary = {{"points", std::to_string(spec.points())},
                  {"options that vary", std::to_string(spec.keys().size())},
                  {"points that failed", std::to_string(failed)}}};
  html.sweep = html_sweep(table, spec.keys().size());
  html.tables.push_back(results_of(table));
  html.tables.push_back(inputs_of(spec));
  if (cluster) {
    html.tables.push_back(html_estimates(cluster->estimates));
    html.tables.back().note = "Of the cluster of the first point. " + html.tables.back().note;
  }
  if (cluster) {
    for (const std::string& note : staging_notes(*cluster)) {
      html.notes.push_back("the cluster of the first point: " + note);
    }
  }
  if (failed > 0) {
    html.notes.emplace_back("points that failed are in the table alone, with their errors");
  }
  html.notes.emplace_back(
      "the charts are of predictions without intervals: how far such are off is in "
      "docs/accuracy/accuracy.md");
  return html;
}

}  // namespace trainyard
