// SPDX-License-Identifier: Apache-2.0
#include "report/accuracy/host_report.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "calibration/machine/profile_calibration.h"
#include "report/formats/log_percent.h"

namespace trainyard {
namespace {

std::vector<Cell> host_error_cells(const std::string& name, const CalibrationError& error) {
  return {Cell::of(name),
          Cell::count(error.rows),
          error_cell(true, error.median_shipped),
          error_cell(true, error.p90_shipped),
          error_cell(true, error.median_fitted),
          error_cell(true, error.p90_fitted)};
}

Table host_errors(const HostCalibration& calibration) {
  Table table({column("rows", "rows", Align::Left), column("count", "count"),
               column("shipped", "median_shipped"), column("p90", "p90_shipped"),
               column("fitted", "median_fitted"), column("p90", "p90_fitted")});
  const auto add = [&](const std::string& name, const std::vector<EstimatedRow>& rows) {
    if (!rows.empty()) {
      table.add_row(host_error_cells(name, calibration_error(rows)));
    }
  };
  add("fitted to", calibration.rows(RowUse::Fitted));
  add("kept out", calibration.rows(RowUse::KeptOut));
  add("outliers", calibration.rows(RowUse::Outlier));
  std::vector<EstimatedRow> all;
  std::vector<EstimatedRow> some;
  const std::vector<HostComparison>& rows = calibration.collectives;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    some.push_back({.use = RowUse::KeptOut,
                    .shipped = std::log(rows[i].shipped_us / rows[i].measured_us),
                    .fitted = std::log(rows[i].fitted_us / rows[i].measured_us)});
    all.push_back(some.back());
    const bool is_last = i + 1 == rows.size() || rows[i + 1].operation != rows[i].operation ||
                         rows[i + 1].ranks != rows[i].ranks;
    if (is_last) {
      add(fmt::format("{}, {} ranks", to_string(rows[i].operation), rows[i].ranks), some);
      some.clear();
    }
  }
  add("all collectives", all);
  return table;
}

// Times in seconds, rates in bits per second.
Table host_constants(const HostCalibration& calibration) {
  Table table({column("constant", "constant", Align::Left),
               {.name = "", .key = "unit", .shown = Shown::Programs},
               column("shipped", "shipped"),
               column("fitted", "value"),
               column("low", "low"),
               column("high", "high"),
               column("rows", "rows"),
               column("stays because", "reason", Align::Left)});
  for (const FittedConstant& one : calibration.constants) {
    const auto value = [&](double number) {
      return Cell{one.is_time ? fmt::format("{:.3g} ns", number * 1e9)
                              : fmt::format("{:.3g} GB/s", number / 8e9),
                  number};
    };
    table.add_row({Cell::of(one.name), Cell::of(one.is_time ? "s" : "bit/s"), value(one.shipped),
                   value(one.value), one.is_fitted ? value(one.low) : Cell::none(),
                   one.is_fitted ? value(one.high) : Cell::none(), Cell::count(one.rows),
                   one.is_fitted ? Cell::none() : Cell::of(one.reason)});
  }
  return table;
}

Table host_collectives(const HostCalibration& calibration) {
  Table table({column("operation", "operation", Align::Left), column("ranks", "ranks"),
               column("size", "size_bytes"), column("measured us", "measured_us"),
               column("shipped us", "shipped_us"), column("fitted us", "fitted_us"),
               column("fitted/measured", "ratio")});
  for (const HostComparison& one : calibration.collectives) {
    table.add_row({Cell::of(to_string(one.operation)), Cell::count(one.ranks),
                   Cell{to_string(one.size), one.size.count()}, Cell::number(one.measured_us, 2),
                   Cell::number(one.shipped_us, 2), Cell::number(one.fitted_us, 2),
                   Cell::number(one.fitted_us / one.measured_us, 2)});
  }
  return table;
}

// "all_reduce, 2 ranks" or "ping-pong, tcp".
std::string group_of(const HostRow& row) {
  return parse_operation(row.test) ? fmt::format("{}, {} ranks", row.test, row.ranks)
                                   : fmt::format("{}, {}", row.test, row.path);
}

double log_ratio(const HostPrediction& one) {
  return std::log(one.predicted_us / one.measured_us);
}

// Groups in the order of their first rows, then all collectives.
Table host_scores(const HostValidationReport::Host& host) {
  Table table({column("rows", "rows", Align::Left), column("count", "count"),
               column("median", "median"), column("p90", "p90"), column("bias", "bias")});
  std::vector<std::string> names;
  std::map<std::string, std::vector<EstimatedRow>> groups;
  const std::string all = "all collectives";
  const auto add = [&](const std::string& name, const HostPrediction& one) {
    if (!groups.contains(name)) {
      names.push_back(name);
    }
    groups[name].push_back({.use = RowUse::KeptOut, .fitted = log_ratio(one)});
  };
  for (const HostPrediction& one : host.predictions.rows) {
    add(group_of(one.row), one);
  }
  for (const HostPrediction& one : host.predictions.rows) {
    if (parse_operation(one.row.test)) {
      add(all, one);
    }
  }
  for (const std::string& name : names) {
    const std::vector<EstimatedRow>& rows = groups.at(name);
    const CalibrationError error = calibration_error(rows);
    double sum = 0.0;
    for (const EstimatedRow& row : rows) {
      sum += row.fitted;
    }
    table.add_row({Cell::of(name), Cell::count(error.rows), error_cell(true, error.median_fitted),
                   error_cell(true, error.p90_fitted),
                   bias_cell(true, sum / static_cast<double>(rows.size()))});
  }
  return table;
}

Table host_predictions(const HostValidationReport& report) {
  Table table({column("host", "host", Align::Left), column("test", "test", Align::Left),
               column("path", "path", Align::Left), column("ranks", "ranks"),
               column("size", "size_bytes"), column("measured us", "measured_us"),
               column("predicted us", "predicted_us"), column("log ratio", "log_ratio")});
  for (const HostValidationReport::Host& host : report.hosts) {
    for (const HostPrediction& one : host.predictions.rows) {
      table.add_row({Cell::of(host.set.name), Cell::of(one.row.test), Cell::of(one.row.path),
                     Cell::count(one.row.ranks),
                     Cell{to_string(one.row.size), one.row.size.count()},
                     Cell::number(one.measured_us, 2), Cell::number(one.predicted_us, 2),
                     Cell::number(log_ratio(one), 3)});
    }
  }
  return table;
}

}  // namespace

Document document_of(const HostValidationReport& report) {
  Document document;
  document.heading.push_back(
      fmt::format("Validated by Trainyard: {} hosts, costs of MPI's messages of {}",
                  report.hosts.size(), report.profile));
  for (const HostValidationReport::Host& host : report.hosts) {
    document.add_table(fmt::format("{}: {}, {} cores, {}: |predicted / measured - 1|",
                                   host.set.name, host.set.cpu, host.set.cores, host.set.mpi),
                       host_scores(host));
    for (const std::string& note : notes_of(host.predictions)) {
      document.notes.push_back(fmt::format("{}: {}", host.set.name, note));
    }
  }
  document.add_table("All rows", host_predictions(report), Shown::Programs, "rows");
  return document;
}

void add_host(const HostCalibration& calibration, Document& document) {
  document.heading.push_back(fmt::format("Host: {}, {} cores, {}; noise {}", calibration.set.cpu,
                                         calibration.set.cores, calibration.set.mpi,
                                         percent_of_log(calibration.fit.noise)));
  document.add_table(
      "|predicted / measured - 1|, median and 90th percentile; nothing is fitted to "
      "collectives within a host",
      host_errors(calibration), Shown::People | Shown::Json, "host_errors");
  document.add_table("Costs of MPI's messages, within which they are with 90 %",
                     host_constants(calibration), Shown::All, "host_constants");
  if (!calibration.collectives.empty()) {
    document.add_table("Collectives, the least of their times", host_collectives(calibration),
                       Shown::People | Shown::Json, "host_collectives");
  }
  document.notes.insert(document.notes.end(), calibration.notes.begin(), calibration.notes.end());
}

}  // namespace trainyard
