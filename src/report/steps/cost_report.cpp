// SPDX-License-Identifier: Apache-2.0
#include "report/steps/cost_report.h"

#include <spdlog/fmt/fmt.h>

#include <optional>

namespace trainyard {
namespace {

constexpr double kMillion = 1e6;
constexpr double kTrillion = 1e12;

bool has_prices(const PartCosts& costs) {
  return !costs.currency.empty();
}

}  // namespace

Cell cost_figure(const std::optional<double>& value, int decimals) {
  return value ? Cell{fmt::format("{:.{}f}", *value, decimals), *value} : Cell::none();
}

std::string joined_names(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, " "));
}

std::vector<std::pair<std::string, Cell>> cost_cells(const PricedStep& priced) {
  const StepCost& step = priced.step;
  const CostTotals& totals = priced.cluster.totals;
  const auto kilojoules = step.joules ? std::optional(*step.joules / 1e3) : std::nullopt;
  return {{"currency", Cell::of(priced.cluster.costs.currency)},
          {"without_watts", Cell::of(joined_names(totals.without_watts))},
          {"without_price", Cell::of(joined_names(totals.without_price))},
          {"energy_of_step_kj", cost_figure(kilojoules, 3)},
          {"energy_of_token_j", cost_figure(step.joules_of_token(), 4)},
          {"energy_of_million_tokens_kwh", cost_figure(step.kwh_of_tokens(kMillion), 4)},
          {"price_of_million_tokens", cost_figure(step.price_of_tokens(kMillion), 4)},
          {"price_of_trillion_tokens", cost_figure(step.price_of_tokens(kTrillion), 0)}};
}

Table cost_table(const PricedStep& priced) {
  std::vector<Column> columns;
  std::vector<Cell> row;
  for (auto& [key, cell] : cost_cells(priced)) {
    columns.push_back({.name = key, .key = key});
    row.push_back(std::move(cell));
  }
  Table table(std::move(columns));
  table.add_row(std::move(row));
  return table;
}

std::string cost_text(const PricedStep& priced) {
  const StepCost& step = priced.step;
  const PartCosts& costs = priced.cluster.costs;
  std::string text =
      step.joules ? fmt::format("energy                 {:>12.2f} kJ, {:.4f} J for a token\n",
                                *step.joules / 1e3, *step.joules_of_token())
                  : std::string("energy                      unknown: no part says its watts\n");
  const auto million = step.price_of_tokens(kMillion);
  if (million) {
    text += fmt::format(
        "cost                   {:>12.4f} {} for a million tokens, {:.0f} for a trillion\n",
        *million, costs.currency, *step.price_of_tokens(kTrillion));
  } else {
    text += fmt::format("cost                        unknown: {}\n",
                        has_prices(costs) ? "--prices has no price with years, nor one of a kWh"
                                          : "no prices are shipped; --prices FILE has them");
  }
  return text;
}

std::vector<std::string> cost_notes(const ClusterCosts& costs) {
  std::vector<std::string> notes;
  const CostTotals& totals = costs.totals;
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) {
      notes.push_back(fmt::format("{}: {}", what, fmt::join(names, ", ")));
    }
  };
  add("not in the power, as nobody says their watts", totals.without_watts);
  if (has_prices(costs.costs)) {
    add("not in the price, as nobody says theirs", totals.without_price);
    if (!costs.costs.years && totals.price > 0.0) {
      notes.emplace_back("parts are in no cost of a token, as nobody says their years");
    }
    if (!costs.costs.kwh) {
      notes.emplace_back("energy is in no cost, as nobody says the price of a kWh");
    }
  }
  add("counted at their limit all the time, as nobody says what they draw idle",
      totals.without_idle);
  notes.emplace_back("power is without fans, memory, disks, cables, optics and losses of supplies");
  return notes;
}

}  // namespace trainyard
