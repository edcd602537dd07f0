// SPDX-License-Identifier: Apache-2.0
#include "report/accuracy/calibration_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "report/accuracy/host_report.h"
#include "report/formats/json.h"
#include "report/formats/log_percent.h"

namespace trainyard {
namespace {

constexpr std::array kUses{"fitted", "kept out", "outlier"};
constexpr std::array kShownUses{std::pair{"fitted to", RowUse::Fitted},
                                std::pair{"kept out", RowUse::KeptOut}};

std::vector<Cell> error_cells(const char* use, const CalibrationError& error) {
  return {Cell::of(use),
          Cell::count(error.rows),
          error_cell(true, error.median_shipped),
          error_cell(true, error.p90_shipped),
          error_cell(true, error.median_fitted),
          error_cell(true, error.p90_fitted)};
}

std::vector<Column> error_columns(const char* key) {
  return {column("rows", key, Align::Left),    column("count", "count"),
          column("shipped", "median_shipped"), column("p90", "p90_shipped"),
          column("fitted", "median_fitted"),   column("p90", "p90_fitted")};
}

Table error_table(const ProfileCalibration& calibration) {
  Table table(error_columns("rows"));
  for (const auto& [name, use] : kShownUses) {
    const CalibrationError error = error_of(calibration.tables, use);
    if (error.rows > 0) {
      table.add_row(error_cells(name, error));
    }
  }
  return table;
}

// Values in seconds, bits per second, or shares. People see those that rows move with.
Table constant_table(const ProfileCalibration& calibration, bool has_all) {
  static constexpr std::array kUnits{"s", "bit/s", "share"};
  Table table({column("constant", "constant", Align::Left),
               {.name = "", .key = "unit", .shown = Shown::Programs},
               column("mark", "mark", Align::Left),
               column("shipped", "shipped"),
               column("fitted", "value"),
               column("low", "low"),
               column("high", "high"),
               column("rows", "rows"),
               column("files", "files"),
               column("with", "rests_on", Align::Left),
               column("why", "reason", Align::Left)});
  for (const CalibratedConstant& one : calibration.constants) {
    const bool is_measured = one.mark == ConstantMark::Measured;
    if (!has_all && !is_measured && one.rows == 0) {
      continue;
    }
    const auto value = [&](double number) {
      return Cell{constant_text(one.constant.kind, number), number};
    };
    const auto text = [](const std::string& of) { return Cell{of.empty() ? "-" : of, of}; };
    table.add_row({Cell::of(one.constant.name),
                   Cell::of(kUnits[static_cast<std::size_t>(one.constant.kind)]),
                   Cell::of(to_string(one.mark)),
                   value(one.constant.in_file),
                   value(one.value),
                   is_measured ? value(one.low) : Cell::none(),
                   is_measured ? value(one.high) : Cell::none(),
                   Cell::count(one.rows),
                   {std::to_string(one.files.size()), fmt::format("{}", fmt::join(one.files, " "))},
                   text(one.rests_on),
                   text(one.reason)});
  }
  return table;
}

Table link_table(const std::vector<LinkComparison>& links) {
  Table table({column("file", "file", Align::Left), column("test", "test", Align::Left),
               column("size", "size_bytes"), column("values", "values"),
               column("measured", "measured"), column("least", "least"), column("most", "most"),
               column("unit", "unit", Align::Left), column("simulated", "simulated"),
               column("ratio", "ratio"), column("remark", "remark", Align::Left)});
  const auto number = [](double value) { return Cell::number(value, 2); };
  for (const LinkComparison& one : links) {
    table.add_row({Cell::of(one.file), Cell::of(one.test),
                   one.size == Bytes() ? Cell::none() : Cell{to_string(one.size), one.size.count()},
                   Cell::count(one.values), number(one.measured), number(one.min), number(one.max),
                   Cell::of(one.is_latency ? "us" : "GB/s"),
                   one.simulated ? number(*one.simulated) : Cell::none(),
                   one.simulated ? number(one.measured / *one.simulated) : Cell::none(),
                   Cell::any(one.remark)});
  }
  return table;
}

Json tables_json(const ProfileCalibration& calibration) {
  Json tables = Json::array();
  for (const CalibratedTable& table : calibration.tables) {
    Json rows = Json::array();
    for (const CalibratedRow& row : table.rows) {
      rows.push_back({{"size_bytes", row.size.count()},
                      {"line", row.line == 0 ? Json() : Json(row.line)},
                      {"use", kUses[static_cast<std::size_t>(row.use)]},
                      {"measured_us", row.measured.microseconds()},
                      {"shipped_us", row.shipped.microseconds()},
                      {"fitted_us", row.fitted.microseconds()}});
    }
    tables.push_back({{"file", table.file},
                      {"part", table.part},
                      {"operation", to_string(table.operation)},
                      {"ranks", table.ranks},
                      {"rows", std::move(rows)}});
  }
  return tables;
}

void add_profile(const std::string& cluster, const ProfileCalibration& calibration,
                 Document& document) {
  const ConstantFit& fit = calibration.fit;
  const auto rows_of = [&](RowUse use) { return error_of(calibration.tables, use).rows; };
  const auto kept_out = std::find_if(calibration.tables.begin(), calibration.tables.end(),
                                     [](const CalibratedTable& table) { return table.kept_out; });
  document.heading = {
      fmt::format("Calibrated by Trainyard: cluster {} ({}), {} tables", cluster,
                  to_string(calibration.basis.machine), calibration.tables.size()),
      fmt::format(
          "{} rows fitted to, {} kept out{}, {} outliers; noise {}, {:.1f} rows say as much as one",
          rows_of(RowUse::Fitted), rows_of(RowUse::KeptOut),
          kept_out == calibration.tables.end()
              ? ""
              : fmt::format(", all of {} among them", to_string(kept_out->operation)),
          rows_of(RowUse::Outlier), percent_of_log(fit.noise), fit.design)};
  for (const nccl::ProfileBasis::Rows& rows : calibration.basis.rows) {
    document.heading.push_back(fmt::format("rests on {} rows of {} with {} ranks, {} to {}",
                                           rows.count, to_string(rows.operation), rows.ranks,
                                           to_string(rows.min), to_string(rows.max)));
  }
  document.add("machine", to_string(calibration.basis.machine));
  document.add("noise", fit.noise);
  document.add("design_effect", fit.design);
  document.add_detail("moving", fit.moving);
  document.add_detail("rank", fit.rank);
  document.add("converged", fit.converged);
  document.add_table("|predicted / measured - 1|, median and 90th percentile",
                     error_table(calibration), Shown::People | Shown::Json, "errors");
  const Table moving = constant_table(calibration, false);
  document.add_table(
      fmt::format("Constants that rows move with: {}, which show {} combinations{}; one that they "
                  "do not determine stays as shipped; low to high: 90 %",
                  fit.moving, fit.rank, fit.converged ? "" : "; the fit has not converged"),
      moving);
  document.notes.push_back(fmt::format("{} others, which no row moves with, are as shipped",
                                       calibration.constants.size() - moving.rows().size()));
  document.add_table("", constant_table(calibration, true), Shown::Programs, "constants");
  document.add_detail("tables", tables_json(calibration));
  document.add_detail("warnings", calibration.warnings);
}

// --- Rates of kernels --------------------------------------------------------------------------

Table rate_errors(const RateCalibration& calibration) {
  std::vector<Column> columns = error_columns("use");
  columns.insert(columns.begin(), column("measurement", "measurement", Align::Left));
  Table table(std::move(columns));
  const auto add = [&](const std::string& name, std::optional<std::size_t> number) {
    for (const auto& [use_name, use] : kShownUses) {
      const CalibrationError error = calibration.error(use, number);
      if (error.rows > 0) {
        std::vector<Cell> cells = error_cells(use_name, error);
        cells.insert(cells.begin(), Cell::of(name));
        table.add_row(std::move(cells));
      }
    }
  };
  for (std::size_t t = 0; t < calibration.tables.size(); ++t) {
    add(calibration.tables[t].id, t);
  }
  add("all", std::nullopt);
  return table;
}

// All rates, fitted or not; times in seconds.
Table rate_table(const RateCalibration& calibration) {
  Table table({column("rate", "rate", Align::Left), column("shipped", "shipped"),
               column("value", "value"), column("low", "low"), column("high", "high"),
               column("rows", "rows"), column("stays because", "reason", Align::Left)});
  for (const FittedConstant& rate : calibration.rates) {
    const auto cell = [&](double value) {
      return rate.is_time ? Cell{fmt::format("{:.2f} us", value * 1e6), value}
                          : Cell::number(value, value >= 2.0 ? 0 : 3);
    };
    table.add_row({Cell::of(rate.name), cell(rate.shipped), cell(rate.value),
                   rate.is_fitted ? cell(rate.low) : Cell::none(),
                   rate.is_fitted ? cell(rate.high) : Cell::none(), Cell::count(rate.rows),
                   rate.is_fitted ? Cell::none() : Cell::of(rate.reason)});
  }
  return table;
}

Json rates_json(const RateCalibration& calibration) {
  Json root{{"gpu", calibration.gpu},
            {"noise", calibration.fit.noise},
            {"errors", to_json(rate_errors(calibration))},
            {"rates", to_json(rate_table(calibration))},
            {"tables", Json::array()}};
  for (std::size_t t = 0; t < calibration.tables.size(); ++t) {
    const RateTable& table = calibration.tables[t];
    Json rows = Json::array();
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      const EstimatedRow& estimate = calibration.fit.tables.at(t).at(r);
      const double measured = table.rows[r].measured.microseconds();
      rows.push_back({{"what", table.rows[r].text},
                      {"use", kUses.at(static_cast<std::size_t>(estimate.use))},
                      {"measured_us", measured},
                      {"shipped_us", measured * std::exp(estimate.shipped)},
                      {"fitted_us", measured * std::exp(estimate.fitted)}});
    }
    root["tables"].push_back(
        {{"measurement", table.id}, {"warm", table.warm}, {"rows", std::move(rows)}});
  }
  return root;
}

void add_rates(const RateCalibration& calibration, Document& document) {
  document.add_table(
      fmt::format("Rates of kernels of {}, shares of its peaks; noise {}. |predicted / measured - "
                  "1|, median and 90th percentile",
                  calibration.gpu, percent_of_log(calibration.fit.noise)),
      rate_errors(calibration));
  document.add_table("Rates, within which they are with 90 %", rate_table(calibration),
                     Shown::People | Shown::Csv);
  document.add_detail("gpu_rates", rates_json(calibration));
  for (const RateTable& table : calibration.tables) {
    if (table.warm < 1.0) {
      document.notes.push_back(
          fmt::format("{}: times are those of bursts divided by {:.3f}, as a product of 8192 keeps "
                      "that share of its rate for seconds",
                      table.id, table.warm));
    }
  }
  document.notes.emplace_back(
      "kernels that ran alone; other kernels beside them and a late host are not in it");
}

}  // namespace

Document document_of(const CalibrationReport& report) {
  Document document;
  document.add("cluster", report.cluster);
  if (report.calibration) {
    add_profile(report.cluster, *report.calibration, document);
  }
  if (report.rates) {
    add_rates(*report.rates, document);
  }
  if (report.host) {
    add_host(*report.host, document);
  }
  document.add_table(
      fmt::format("Links of cluster {}: what tools measured, and the same transfers simulated",
                  report.cluster),
      link_table(report.links), Shown::All, "links");
  return document;
}

}  // namespace trainyard
