// SPDX-License-Identifier: Apache-2.0
#include "report/accuracy/training_report.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <array>
#include <map>
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

// Errors as what they mean for a time.
void add_errors(const StepErrors& errors, const std::string& name, const std::string& key,
                std::vector<Field>& fields) {
  const bool is_known = errors.rows > 0;
  fields.push_back({column(name, "rows_" + key), Cell::count(errors.rows)});
  fields.push_back({column("median", "median_error_" + key), error_cell(is_known, errors.median)});
  fields.push_back({column("p90", "p90_error_" + key), error_cell(is_known, errors.p90)});
  fields.push_back({column("bias", "bias_" + key), bias_cell(is_known, errors.bias)});
  fields.push_back({column("scatter", "scatter_" + key), error_cell(is_known, errors.scatter)});
}

Table source_table(const std::vector<SourceScore>& sources) {
  return table_of(sources, [](const SourceScore& source) {
    std::vector<Field> fields{
        {column("source", "source", Align::Left), Cell::of(source.name)},
        {column("GPUs", "generation", Align::Left), Cell::of(source.generation)}};
    for (const TrainingRowStatus status : kStatuses) {
      fields.push_back(
          {column(std::string(to_string(status)), key_of(status)),
           Cell::count(source.status.contains(status) ? source.status.at(status) : 0)});
    }
    add_errors(source.dense, "dense", "dense", fields);
    add_errors(source.experts, "MoE", "moe", fields);
    return fields;
  });
}

// Means of a generation, or of all.
struct MeanRow {
  std::string name;
  StepErrors dense;
  StepErrors experts;
};

Table mean_table(const TrainingScore& score) {
  std::vector<MeanRow> rows;
  for (const auto& [generation, dense] : score.dense_by_generation) {
    const StepErrors& experts = score.experts_by_generation.at(generation);
    if (dense.rows + experts.rows > 0) {
      rows.push_back({generation, dense, experts});
    }
  }
  rows.push_back({"all", score.dense, score.experts});
  return table_of(rows, [](const MeanRow& row) {
    std::vector<Field> fields{{column("GPUs", "generation", Align::Left), Cell::of(row.name)},
                              {column("sources", "sources_dense"), Cell::count(row.dense.sources)}};
    add_errors(row.dense, "dense", "dense", fields);
    fields.push_back({column("sources", "sources_moe"), Cell::count(row.experts.sources)});
    add_errors(row.experts, "MoE", "moe", fields);
    return fields;
  });
}

Table memory_table(const TrainingScore& score) {
  std::vector<MemoryScore> rows = score.memory_sources;
  rows.push_back({"all", score.memory, {}});
  return table_of(rows, [](const MemoryScore& row) {
    std::vector<Field> fields{{column("source", "source", Align::Left), Cell::of(row.name)}};
    add_errors(row.errors, "memory", "memory", fields);
    return fields;
  });
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

// Reasons of rows that are not scored, each once in a source, with the number of its rows.
void add_unscored(const SourceScore& source, std::vector<std::string>& notes) {
  std::map<std::pair<TrainingRowStatus, std::string>, std::pair<std::size_t, std::string>> reasons;
  for (const UnscoredRow& row : source.unscored) {
    if (!row.reason.empty()) {
      auto& [count, first] = reasons[{row.status, row.reason}];
      first = count == 0 ? row.id : first;
      ++count;
    }
  }
  for (const auto& [key, rows] : reasons) {
    notes.push_back(fmt::format("{}: {}, {} row{} ({}{}): {}", to_string(key.first), source.name,
                                rows.first, rows.first == 1 ? "" : "s", rows.second,
                                rows.first == 1 ? "" : ", ...", key.second));
  }
}

Json sources_json(const TrainingScore& score) {
  Json sources = to_json(source_table(score.sources));
  for (std::size_t index = 0; index < score.sources.size(); ++index) {
    Json rows = Json::array();
    for (const ScoredStep& step : score.sources[index].steps) {
      rows.push_back({{"id", step.id},
                      {"moe", step.has_experts},
                      {"measured_s", step.measured_s},
                      {"predicted_s", step.predicted_s},
                      {"log_ratio", step.log_error()}});
    }
    Json unscored = Json::array();
    for (const UnscoredRow& row : score.sources[index].unscored) {
      unscored.push_back({{"id", row.id}, {"status", key_of(row.status)}, {"reason", row.reason}});
    }
    sources[index]["rows"] = std::move(rows);
    sources[index]["unscored"] = std::move(unscored);
  }
  return sources;
}

// All but the last row, which is of all.
Json without_all(const Table& table) {
  Json rows = to_json(table);
  rows.erase(rows.size() - 1);
  return rows;
}

Json memory_json(const TrainingScore& score) {
  Json sources = without_all(memory_table(score));
  for (std::size_t index = 0; index < score.memory_sources.size(); ++index) {
    Json rows = Json::array();
    for (const ScoredStep& row : score.memory_sources[index].rows) {
      rows.push_back({{"id", row.id},
                      {"measured_bytes", row.measured_s},
                      {"predicted_bytes", row.predicted_s},
                      {"log_ratio", row.log_error()}});
    }
    sources[index]["rows"] = std::move(rows);
  }
  return sources;
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

void add_fits(const TrainingReport& report, Document& document) {
  document.add_table("With the constants of the files instead, means over sources.",
                     mean_table(*report.with_files));
  Json fits = Json::array();
  for (const GenerationFit& fit : report.fits) {
    const Table constants = rate_constant_table(fit);
    document.add_table(fmt::format("{}, fitted to {}: cost {:.2f} from {:.2f}.", fit.generation,
                                   fmt::join(fit.sources, ", "), fit.cost, fit.cost_before),
                       constants);
    fits.push_back({{"generation", fit.generation},
                    {"sources", fit.sources},
                    {"cost_before", fit.cost_before},
                    {"cost", fit.cost},
                    {"constants", to_json(constants)}});
  }
  document.add_detail("with_files", summary_of(*report.with_files));
  document.add_detail("fits", std::move(fits));
}

struct CoverageRow {
  std::string name;
  Coverage coverage;
};

void add_coverage(const TrainingReport& report, Document& document) {
  Json all = Json::object();
  for (const auto& [what, coverage] : report.coverage) {
    std::vector<CoverageRow> rows;
    for (const auto& [name, one] : coverage) {
      rows.push_back({name, one});
    }
    const Table table = table_of(rows, [](const CoverageRow& row) {
      return std::vector<Field>{
          {column("class", "class", Align::Left), Cell::of(row.name)},
          {column("rows", "rows"), Cell::count(row.coverage.rows)},
          {column("inside", "inside"),
           Cell{fmt::format("{:.1f} %", 100.0 * row.coverage.share()), row.coverage.share()}}};
    });
    document.add_table(fmt::format("Rows in their intervals of 90 %, {}.", what), table);
    all[what] = to_json(table);
  }
  if (!all.empty()) {
    document.add_detail("coverage", std::move(all));
  }
}

void add_summary(const TrainingReport& report, Document& document) {
  const TrainingScore& score = report.score;
  Json summary = summary_of(score);
  summary["row_count"] = score.rows();
  summary["with_plan"] = score.with_plan();
  summary["predicted"] = score.predicted();
  for (const TrainingRowStatus status : kStatuses) {
    summary[key_of(status)] = score.status.contains(status) ? score.status.at(status) : 0;
  }
  summary["missing_fields"] = Json::object();
  std::vector<std::string> lacking;
  for (const auto& [field, count] : score.missing) {
    summary["missing_fields"][field] = count;
    lacking.push_back(fmt::format("{} {}", field, count));
  }
  summary["notes"] = report.notes;
  summary["exceeded"] = report.exceeded;
  document.add_detail("summary", std::move(summary));
  if (!lacking.empty()) {
    document.notes.push_back(fmt::format("rows that lack a field: {}", fmt::join(lacking, "; ")));
  }
}

}  // namespace

Document document_of(const TrainingReport& report) {
  const TrainingScore& score = report.score;
  Document document{
      .heading = {
          fmt::format("Simulated by Trainyard against {} measured rows: {} have a plan, {} are "
                      "predicted.",
                      score.rows(), score.with_plan(), score.predicted()),
          "Errors of step times are exp(|ln(predicted / measured)|) - 1; bias: the median, "
          "positive",
          "where predictions are too slow; scatter: the median distance from the bias."}};
  add_summary(report, document);
  document.add_detail("generations", without_all(mean_table(score)));
  document.add(NamedTable{
      .key = "", .table = source_table(score.sources), .shown = Shown::People | Shown::Csv});
  document.add_detail("sources", sources_json(score));
  document.add_table("Means over sources.", mean_table(score));
  if (score.memory.rows > 0) {
    document.add_table("Memory of the fullest rank.", memory_table(score));
    document.add_detail("memory", memory_json(score));
  }
  if (report.with_files) {
    add_fits(report, document);
  }
  add_coverage(report, document);
  for (const SourceScore& source : score.sources) {
    add_unscored(source, document.notes);
  }
  document.notes.insert(document.notes.end(), report.notes.begin(), report.notes.end());
  for (const std::string& line : report.exceeded) {
    document.notes.push_back("budget exceeded: " + line);
  }
  return document;
}

}  // namespace trainyard
