// SPDX-License-Identifier: Apache-2.0
#include "report/accuracy/training_report.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "report/formats/json.h"
#include "report/formats/log_percent.h"

namespace trainyard {
namespace {

constexpr std::array kStatuses{TrainingRowStatus::Complete, TrainingRowStatus::Assumed,
                               TrainingRowStatus::Missing,  TrainingRowStatus::Clash,
                               TrainingRowStatus::Excluded, TrainingRowStatus::NoStep};

std::string key_of(TrainingRowStatus status) {
  return status == TrainingRowStatus::NoStep ? "no_step" : std::string(to_string(status));
}

std::size_t count_of(const std::map<TrainingRowStatus, std::size_t>& status,
                     TrainingRowStatus one) {
  const auto found = status.find(one);
  return found == status.end() ? 0 : found->second;
}

// |ln ratio| as what it means for a time.
// StepErrors and ErrorMeans have the same figures.
template <typename Errors>
void add_errors(const Errors& errors, std::vector<Cell>& cells) {
  cells.push_back(Cell::count(errors.rows));
  cells.push_back(error_cell(errors.rows > 0, errors.median));
  cells.push_back(error_cell(errors.rows > 0, errors.p90));
  cells.push_back(bias_cell(errors.rows > 0, errors.bias));
  cells.push_back(error_cell(errors.rows > 0, errors.scatter));
}

void add_error_columns(const std::string& name, const std::string& key,
                       std::vector<Column>& columns) {
  columns.push_back(column(name, "rows_" + key));
  columns.push_back(column("median", "median_error_" + key));
  columns.push_back(column("p90", "p90_error_" + key));
  columns.push_back(column("bias", "bias_" + key));
  columns.push_back(column("scatter", "scatter_" + key));
}

Table source_table(std::span<const SourceScore> sources) {
  std::vector<Column> columns{column("source", "source", Align::Left),
                              column("GPUs", "generation", Align::Left)};
  for (const TrainingRowStatus status : kStatuses) {
    columns.push_back(column(std::string(to_string(status)), key_of(status)));
  }
  add_error_columns("dense", "dense", columns);
  add_error_columns("MoE", "moe", columns);
  Table table(std::move(columns));
  for (const SourceScore& source : sources) {
    std::vector<Cell> cells{Cell::of(source.name), Cell::of(source.generation)};
    for (const TrainingRowStatus status : kStatuses) {
      cells.push_back(Cell::count(count_of(source.status, status)));
    }
    add_errors(source.dense, cells);
    add_errors(source.experts, cells);
    table.add_row(std::move(cells));
  }
  return table;
}

Table mean_table(const TrainingScore& score) {
  std::vector<Column> columns{column("GPUs", "generation", Align::Left),
                              column("sources", "sources_dense")};
  add_error_columns("dense", "dense", columns);
  columns.push_back(column("sources", "sources_moe"));
  add_error_columns("MoE", "moe", columns);
  Table table(std::move(columns));
  const auto add = [&](const std::string& name, const ErrorMeans& dense,
                       const ErrorMeans& experts) {
    std::vector<Cell> cells{Cell::of(name), Cell::count(dense.sources)};
    add_errors(dense, cells);
    cells.push_back(Cell::count(experts.sources));
    add_errors(experts, cells);
    table.add_row(std::move(cells));
  };
  for (const auto& [generation, dense] : score.dense_by_generation) {
    const ErrorMeans& experts = score.experts_by_generation.at(generation);
    if (dense.rows + experts.rows > 0) {
      add(generation, dense, experts);
    }
  }
  add("all", score.dense, score.experts);
  return table;
}

Table memory_table(const TrainingScore& score) {
  std::vector<Column> columns{column("source", "source", Align::Left)};
  add_error_columns("memory", "memory", columns);
  Table table(std::move(columns));
  for (const MemoryScore& source : score.memory_sources) {
    std::vector<Cell> cells{Cell::of(source.name)};
    add_errors(source.errors, cells);
    table.add_row(std::move(cells));
  }
  std::vector<Cell> cells{Cell::of("all")};
  add_errors(score.memory, cells);
  table.add_row(std::move(cells));
  return table;
}

Table rate_constant_table(const GenerationFit& fit) {
  Table table({column("constant", "name", Align::Left), column("file", "in_file"),
               column("assumed", "start"), column("spread", "spread"), column("fitted", "value"),
               column("rows", "rows")});
  for (const FittedStepConstant& one : fit.constants) {
    const auto number = [](double value) { return Cell{fmt::format("{:.4g}", value), value}; };
    table.add_row({Cell::of(one.constant.name), number(one.constant.in_file),
                   number(one.constant.start), number(one.constant.spread), number(one.value),
                   Cell::count(one.rows)});
  }
  return table;
}

std::string fit_text(const TrainingReport& report) {
  std::string text = "#\n# With the constants of the files instead, means over sources.\n";
  text += render_text(mean_table(*report.with_files));
  for (const GenerationFit& fit : report.fits) {
    text += fmt::format("#\n# {}, fitted to {}: cost {:.2f} from {:.2f}.\n", fit.generation,
                        fmt::join(fit.sources, ", "), fit.cost, fit.cost_before);
    text += render_text(rate_constant_table(fit));
  }
  return text;
}

// Reasons of rows that are not scored, each once in a source, with the number of its rows.
std::string unscored_lines(const SourceScore& source) {
  std::map<std::pair<TrainingRowStatus, std::string>, std::pair<std::size_t, std::string>> reasons;
  for (const UnscoredRow& row : source.unscored) {
    if (!row.reason.empty()) {
      auto& [count, first] = reasons[{row.status, row.reason}];
      first = count == 0 ? row.id : first;
      ++count;
    }
  }
  std::string text;
  for (const auto& [key, rows] : reasons) {
    text += fmt::format("# {}: {}, {} row{} ({}{}): {}\n", to_string(key.first), source.name,
                        rows.first, rows.first == 1 ? "" : "s", rows.second,
                        rows.first == 1 ? "" : ", ...", key.second);
  }
  return text;
}

std::string training_text(const TrainingReport& report) {
  const TrainingScore& score = report.score;
  std::string text = fmt::format(
      "# Simulated by Trainyard against {} measured rows: {} have a plan, {} are predicted.\n"
      "# Errors of step times are exp(|ln(predicted / measured)|) - 1; bias: the median, positive\n"
      "# where predictions are too slow; scatter: the median distance from the bias.\n",
      score.rows(), score.with_plan(), score.predicted());
  text += render_text(source_table(score.sources));
  text += "#\n# Means over sources.\n";
  text += render_text(mean_table(score));
  if (score.memory.rows > 0) {
    text += "#\n# Memory of the fullest rank.\n";
    text += render_text(memory_table(score));
  }
  if (report.with_files) {
    text += fit_text(report);
  }
  text += "#\n# Rows that lack a field:";
  for (const auto& [field, count] : score.missing) {
    text += fmt::format(" {} {};", field, count);
  }
  text.back() = '.';
  text += "\n";
  for (const SourceScore& source : score.sources) {
    text += unscored_lines(source);
  }
  for (const std::string& note : report.notes) {
    text += "# note: " + note + "\n";
  }
  for (const std::string& line : report.exceeded) {
    text += "# budget exceeded: " + line + "\n";
  }
  return text;
}

Json row_list(const SourceScore& source) {
  Json rows = Json::array();
  for (const ScoredStep& step : source.steps) {
    Json row;
    row["id"] = step.id;
    row["moe"] = step.has_experts;
    row["measured_s"] = step.measured_s;
    row["predicted_s"] = step.predicted_s;
    row["log_ratio"] = step.log_error();
    rows.push_back(std::move(row));
  }
  return rows;
}

Json unscored_of(const SourceScore& source) {
  Json rows = Json::array();
  for (const UnscoredRow& unscored : source.unscored) {
    Json row;
    row["id"] = unscored.id;
    row["status"] = key_of(unscored.status);
    row["reason"] = unscored.reason;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json summary_of(const TrainingScore& score) {
  Json summary = to_json(mean_table(score)).back();
  summary.erase("generation");
  if (score.memory.rows > 0) {
    const Json memory = to_json(memory_table(score)).back();
    for (const auto& [key, value] : memory.items()) {
      if (key != "source") {
        summary[key] = value;
      }
    }
  }
  return summary;
}

Json fits_of(const TrainingReport& report) {
  Json fits = Json::array();
  for (const GenerationFit& fit : report.fits) {
    Json one;
    one["generation"] = fit.generation;
    one["sources"] = fit.sources;
    one["cost_before"] = fit.cost_before;
    one["cost"] = fit.cost;
    one["constants"] = to_json(rate_constant_table(fit));
    fits.push_back(std::move(one));
  }
  return fits;
}

std::string training_json(const TrainingReport& report) {
  const TrainingScore& score = report.score;
  Json generations = to_json(mean_table(score));
  generations.erase(generations.size() - 1);
  Json summary = summary_of(score);
  summary["row_count"] = score.rows();
  summary["with_plan"] = score.with_plan();
  summary["predicted"] = score.predicted();
  for (const TrainingRowStatus status : kStatuses) {
    summary[key_of(status)] = count_of(score.status, status);
  }
  summary["missing_fields"] = Json::object();
  for (const auto& [field, count] : score.missing) {
    summary["missing_fields"][field] = count;
  }
  summary["notes"] = report.notes;
  summary["exceeded"] = report.exceeded;
  Json sources = to_json(source_table(score.sources));
  for (std::size_t index = 0; index < score.sources.size(); ++index) {
    sources[index]["rows"] = row_list(score.sources[index]);
    sources[index]["unscored"] = unscored_of(score.sources[index]);
  }
  Json root;
  root["summary"] = std::move(summary);
  root["generations"] = std::move(generations);
  root["sources"] = std::move(sources);
  if (score.memory.rows > 0) {
    root["memory"] = to_json(memory_table(score));
    root["memory"].erase(root["memory"].size() - 1);
  }
  if (report.with_files) {
    root["with_files"] = summary_of(*report.with_files);
    root["fits"] = fits_of(report);
  }
  return to_text(root);
}

}  // namespace

std::string render(const TrainingReport& report, Format format) {
  switch (format) {
    case Format::Table:
      return training_text(report);
    case Format::Csv:
      return render_csv(source_table(report.score.sources));
    case Format::Json:
      break;
  }
  return training_json(report);
}

}  // namespace trainyard
