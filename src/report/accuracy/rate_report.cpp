// SPDX-License-Identifier: Apache-2.0
#include "report/accuracy/rate_report.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "report/formats/log_percent.h"

namespace trainyard {
namespace {

Cell rate_cell(const CalibratedRate& rate, double value) {
  if (rate.is_time) {
    return {fmt::format("{:.2f} us", value * 1e6), value};
  }
  return {value >= 2.0 ? fmt::format("{:.0f}", value) : fmt::format("{:.3f}", value), value};
}

Table errors(const RateCalibration& calibration) {
  Table table({column("measurement", "measurement", Align::Left),
               column("rows", "use", Align::Left), column("count", "count"),
               column("shipped", "median_shipped"), column("p90", "p90_shipped"),
               column("fitted", "median_fitted"), column("p90", "p90_fitted")});
  const auto add = [&](const std::string& name, std::optional<std::size_t> number) {
    for (const auto& [use_name, use] :
         {std::pair{"fitted to", RowUse::Fitted}, std::pair{"kept out", RowUse::KeptOut}}) {
      const RateCalibration::Error error = calibration.error(use, number);
      if (error.rows > 0) {
        table.add_row({Cell::of(name), Cell::of(std::string(use_name)), Cell::count(error.rows),
                       Cell{percent_of_log(error.median_shipped), error.median_shipped},
                       Cell{percent_of_log(error.p90_shipped), error.p90_shipped},
                       Cell{percent_of_log(error.median_fitted), error.median_fitted},
                       Cell{percent_of_log(error.p90_fitted), error.p90_fitted}});
      }
    }
  };
  for (std::size_t t = 0; t < calibration.tables.size(); ++t) {
    add(calibration.tables[t].id, t);
  }
  add("all", std::nullopt);
  return table;
}

}  // namespace

Table rate_table(const RateCalibration& calibration) {
  Table table({column("rate", "rate", Align::Left), column("shipped", "shipped"),
               column("value", "value"), column("low", "low"), column("high", "high"),
               column("rows", "rows"), column("stays because", "reason", Align::Left)});
  for (const CalibratedRate& rate : calibration.rates) {
    table.add_row({Cell::of(rate.name), rate_cell(rate, rate.shipped), rate_cell(rate, rate.value),
                   rate.is_fitted ? rate_cell(rate, rate.low) : Cell::none(),
                   rate.is_fitted ? rate_cell(rate, rate.high) : Cell::none(),
                   Cell::count(rate.rows), rate.is_fitted ? Cell::none() : Cell::of(rate.reason)});
  }
  return table;
}

std::string rate_text(const RateCalibration& calibration) {
  std::string text = fmt::format(
      "# Rates of kernels of {}, shares of its peaks; noise {}\n"
      "# |predicted / measured - 1|, median and 90th percentile\n",
      calibration.gpu, percent_of_log(calibration.fit.noise));
  text += render_text(errors(calibration));
  text += "#\n# Rates, within which they are with 90 %\n";
  text += render_text(rate_table(calibration));
  for (const RateTable& table : calibration.tables) {
    if (table.warm < 1.0) {
      text += fmt::format(
          "# Note: {}: times are those of bursts divided by {:.3f}, as a product of 8192 keeps "
          "that "
          "share of its rate for seconds\n",
          table.id, table.warm);
    }
  }
  return text +
         "# Note: kernels that ran alone; other kernels beside them and a late host are not in "
         "it\n";
}

Json rate_json(const RateCalibration& calibration) {
  static constexpr std::array kUses{"fitted", "kept out", "outlier"};
  Json root;
  root["gpu"] = calibration.gpu;
  root["noise"] = calibration.fit.noise;
  root["errors"] = to_json(errors(calibration));
  root["rates"] = to_json(rate_table(calibration));
  root["tables"] = Json::array();
  for (std::size_t t = 0; t < calibration.tables.size(); ++t) {
    const RateTable& table = calibration.tables[t];
    Json json;
    json["measurement"] = table.id;
    json["warm"] = table.warm;
    json["rows"] = Json::array();
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      const EstimatedRow& estimate = calibration.fit.tables.at(t).at(r);
      const double measured = table.rows[r].measured.microseconds();
      Json row;
      row["what"] = table.rows[r].text;
      row["use"] = kUses.at(static_cast<std::size_t>(estimate.use));
      row["measured_us"] = measured;
      row["shipped_us"] = measured * std::exp(estimate.shipped);
      row["fitted_us"] = measured * std::exp(estimate.fitted);
      json["rows"].push_back(std::move(row));
    }
    root["tables"].push_back(std::move(json));
  }
  return root;
}

}  // namespace trainyard
