// SPDX-License-Identifier: Apache-2.0
#include "report/accuracy/calibration_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "report/accuracy/rate_report.h"
#include "report/formats/json.h"
#include "report/formats/log_percent.h"

namespace trainyard {
namespace {

Cell value_cell(const CalibratedConstant& one, double value) {
  return {constant_text(one.constant.kind, value), value};
}

std::string joined(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, " "));
}

Table error_table(const ProfileCalibration& calibration) {
  Table table({column("rows", "rows", Align::Left), column("count", "count"),
               column("shipped", "median_shipped"), column("p90", "p90_shipped"),
               column("fitted", "median_fitted"), column("p90", "p90_fitted")});
  for (const auto& [name, use] :
       {std::pair{"fitted to", RowUse::Fitted}, std::pair{"kept out", RowUse::KeptOut}}) {
    const CalibrationError error = error_of(calibration.tables, use);
    if (error.rows == 0) {
      continue;
    }
    table.add_row({Cell::of(std::string(name)), Cell::count(error.rows),
                   Cell{percent_of_log(error.median_shipped), error.median_shipped},
                   Cell{percent_of_log(error.p90_shipped), error.p90_shipped},
                   Cell{percent_of_log(error.median_fitted), error.median_fitted},
                   Cell{percent_of_log(error.p90_fitted), error.p90_fitted}});
  }
  return table;
}

Table measured_table(const ProfileCalibration& calibration) {
  Table table({column("constant", "constant", Align::Left), column("shipped", "shipped"),
               column("fitted", "fitted"), column("90 % within", "interval", Align::Left),
               column("rows", "rows"), column("files", "files"),
               column("with", "rests_on", Align::Left)});
  for (const CalibratedConstant& one : calibration.constants) {
    if (one.mark == ConstantMark::Measured) {
      table.add_row({Cell::of(one.constant.name), value_cell(one, one.constant.in_file),
                     value_cell(one, one.value),
                     Cell::of(fmt::format("{} to {}", constant_text(one.constant.kind, one.low),
                                          constant_text(one.constant.kind, one.high))),
                     Cell::count(one.rows), Cell::count(one.files.size()),
                     one.rests_on.empty() ? Cell::none() : Cell::of(one.rests_on)});
    }
  }
  return table;
}

Table kept_table(const ProfileCalibration& calibration) {
  Table table({column("constant", "constant", Align::Left), column("stays", "value"),
               column("mark", "mark", Align::Left), column("rows", "rows"),
               column("why", "reason", Align::Left)});
  for (const CalibratedConstant& one : calibration.constants) {
    if (one.mark != ConstantMark::Measured && one.rows > 0) {
      table.add_row({Cell::of(one.constant.name), value_cell(one, one.value),
                     Cell::of(std::string(to_string(one.mark))), Cell::count(one.rows),
                     Cell::of(one.reason)});
    }
  }
  return table;
}

// Values in seconds, bits per second, or shares.
Table calibrated_table(const ProfileCalibration& calibration) {
  static constexpr std::array kUnits{"s", "bit/s", "share"};
  Table table({column("", "constant"), column("", "unit"), column("", "mark"),
               column("", "shipped"), column("", "value"), column("", "low"), column("", "high"),
               column("", "rows"), column("", "files"), column("", "rests_on"),
               column("", "reason")});
  for (const CalibratedConstant& one : calibration.constants) {
    const bool measured = one.mark == ConstantMark::Measured;
    table.add_row({Cell::of(one.constant.name),
                   Cell::of(std::string(kUnits[static_cast<std::size_t>(one.constant.kind)])),
                   Cell::of(std::string(to_string(one.mark))),
                   value_cell(one, one.constant.in_file), value_cell(one, one.value),
                   measured ? value_cell(one, one.low) : Cell::none(),
                   measured ? value_cell(one, one.high) : Cell::none(), Cell::count(one.rows),
                   Cell::of(joined(one.files)), Cell::of(one.rests_on), Cell::of(one.reason)});
  }
  return table;
}

Table link_table(const std::vector<LinkComparison>& links) {
  Table table({column("file", "file", Align::Left), column("test", "test", Align::Left),
               column("size", "size_bytes"), column("values", "values"),
               column("measured", "measured"), column("least", "least"), column("most", "most"),
               column("unit", "unit", Align::Left), column("simulated", "simulated"),
               column("ratio", "ratio"), column("remark", "remark", Align::Left)});
  const auto number = [](double value) { return Cell{fmt::format("{:.2f}", value), value}; };
  for (const LinkComparison& one : links) {
    table.add_row({Cell::of(one.file), Cell::of(one.test),
                   one.size == Bytes() ? Cell::none() : Cell{to_string(one.size), one.size.count()},
                   Cell::count(one.values), number(one.measured), number(one.least),
                   number(one.most), Cell::of(std::string(one.is_latency ? "us" : "GB/s")),
                   one.simulated ? number(*one.simulated) : Cell::none(),
                   one.simulated ? number(one.measured / *one.simulated) : Cell::none(),
                   one.remark.empty() ? Cell::none() : Cell::of(one.remark)});
  }
  return table;
}

std::size_t count_rows(const ProfileCalibration& calibration, RowUse use) {
  std::size_t rows = 0;
  for (const CalibratedTable& table : calibration.tables) {
    rows += static_cast<std::size_t>(
        std::count_if(table.rows.begin(), table.rows.end(),
                      [&](const CalibratedRow& row) { return row.use == use; }));
  }
  return rows;
}

std::string basis_text(const nccl::ProfileBasis& basis) {
  std::string text;
  for (const nccl::ProfileBasis::Rows& rows : basis.rows) {
    text += fmt::format("# rests on {} rows of {} with {} ranks, {} to {}\n", rows.count,
                        to_string(rows.operation), rows.ranks, to_string(rows.least),
                        to_string(rows.most));
  }
  return text;
}

std::string kept_out_text(const ProfileCalibration& calibration) {
  for (const CalibratedTable& table : calibration.tables) {
    if (table.kept_out) {
      return fmt::format(", all of {} among them", to_string(table.operation));
    }
  }
  return "";
}

std::string links_text(const CalibrationReport& report) {
  if (report.links.empty()) {
    return "";
  }
  return fmt::format(
             "# Links of cluster {}: what tools measured, and the same transfers simulated\n",
             report.cluster) +
         render_text(link_table(report.links));
}

std::string profile_text(const std::string& cluster, const ProfileCalibration& calibration) {
  const ConstantFit& fit = calibration.fit;
  const auto unseen = std::count_if(calibration.constants.begin(), calibration.constants.end(),
                                    [](const CalibratedConstant& one) {
                                      return one.rows == 0 && one.mark != ConstantMark::Measured;
                                    });
  std::string text = fmt::format(
      "# Calibrated by Trainyard: cluster {} ({}), {} tables\n"
      "# {} rows fitted to, {} kept out{}, {} outliers; noise {}, {:.1f} rows say as much as one\n"
      "{}#\n# |predicted / measured - 1|, median and 90th percentile\n",
      cluster, to_string(calibration.basis.machine), calibration.tables.size(),
      count_rows(calibration, RowUse::Fitted), count_rows(calibration, RowUse::KeptOut),
      kept_out_text(calibration), count_rows(calibration, RowUse::Outlier),
      percent_of_log(fit.noise), fit.design, basis_text(calibration.basis));
  text += render_text(error_table(calibration));
  text += fmt::format(
      "#\n# Constants that the rows determine ({} move with rows, which show {} combinations{})\n",
      fit.moving, fit.rank, fit.converged ? "" : "; the fit has not converged");
  text += render_text(measured_table(calibration));
  text += "#\n# Constants that rows move with and do not determine: as shipped\n";
  text += render_text(kept_table(calibration));
  return text + fmt::format("# {} others, which no row moves with, are as shipped\n", unseen);
}

Json rows_json(const CalibratedTable& table) {
  static constexpr std::array kUses{"fitted", "kept out", "outlier"};
  Json rows = Json::array();
  for (const CalibratedRow& row : table.rows) {
    Json json;
    json["size_bytes"] = row.size.count();
    json["line"] = row.line == 0 ? Json(nullptr) : Json(row.line);
    json["use"] = kUses[static_cast<std::size_t>(row.use)];
    json["measured_us"] = row.measured.microseconds();
    json["shipped_us"] = row.shipped.microseconds();
    json["fitted_us"] = row.fitted.microseconds();
    rows.push_back(std::move(json));
  }
  return rows;
}

void add_profile(const ProfileCalibration& calibration, Json& root) {
  root["machine"] = to_string(calibration.basis.machine);
  root["noise"] = calibration.fit.noise;
  root["design_effect"] = calibration.fit.design;
  root["moving"] = calibration.fit.moving;
  root["rank"] = calibration.fit.rank;
  root["converged"] = calibration.fit.converged;
  root["errors"] = to_json(error_table(calibration));
  root["constants"] = to_json(calibrated_table(calibration));
  root["tables"] = Json::array();
  for (const CalibratedTable& table : calibration.tables) {
    Json json;
    json["file"] = table.file;
    json["part"] = table.part;
    json["operation"] = to_string(table.operation);
    json["ranks"] = table.ranks;
    json["rows"] = rows_json(table);
    root["tables"].push_back(std::move(json));
  }
  root["warnings"] = calibration.warnings;
}

Json calibration_json(const CalibrationReport& report) {
  Json root;
  root["cluster"] = report.cluster;
  if (report.calibration) {
    add_profile(*report.calibration, root);
  }
  if (report.rates) {
    root["gpu_rates"] = rate_json(*report.rates);
  }
  root["links"] = to_json(link_table(report.links));
  return root;
}

}  // namespace

std::string render(const CalibrationReport& report, Format format) {
  switch (format) {
    case Format::Csv:
      return render_csv(report.calibration ? calibrated_table(*report.calibration)
                        : report.rates     ? rate_table(*report.rates)
                                           : link_table(report.links));
    case Format::Json:
      return to_text(calibration_json(report));
    case Format::Table:
      break;
  }
  return (report.calibration ? profile_text(report.cluster, *report.calibration) : "") +
         (report.rates ? rate_text(*report.rates) : "") + links_text(report);
}

}  // namespace trainyard
