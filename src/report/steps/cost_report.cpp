// SPDX-License-Identifier: Apache-2.0
#include "report/steps/cost_report.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

namespace trainyard {
namespace {

constexpr double kMillion = 1e6;
constexpr double kTrillion = 1e12;

bool has_prices(const PartCosts& costs) {
  return !costs.currency.empty();
}

// "A B", for a cell of a line.
std::string joined_names(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, " "));
}

}  // namespace

std::vector<Figure> cost_figures(const PricedStep& priced, const std::string& group) {
  const StepCost& step = priced.step;
  const CostTotals& totals = priced.cluster.totals;
  const PartCosts& costs = priced.cluster.costs;
  const auto million = step.price_of_tokens(kMillion);
  Figure energy{.key = "energy_of_step_kj", .cell = {"unknown", {}}, .label = "energy"};
  if (step.joules) {
    energy.cell = Cell::number(*step.joules / 1e3, 2);
    energy.unit = "kJ";
    energy.remark = fmt::format(", {:.4f} J for a token", *step.joules_of_token());
  } else {
    energy.remark = ": no part says its watts";
  }
  Figure price{.key = "price_of_million_tokens", .cell = {"unknown", {}}, .label = "cost"};
  if (million) {
    price.cell = Cell::number(*million, 4);
    price.unit = costs.currency;
    price.remark = fmt::format(" for a million tokens, {:.0f} for a trillion",
                               *step.price_of_tokens(kTrillion));
  } else {
    price.remark = has_prices(costs) ? ": --prices has no price with years, nor one of a kWh"
                                     : ": no prices are shipped; --prices FILE has them";
  }
  std::vector<Figure> figures{
      {.key = "currency", .cell = Cell::of(costs.currency)},
      {.key = "without_watts", .cell = Cell::of(joined_names(totals.without_watts))},
      {.key = "without_price", .cell = Cell::of(joined_names(totals.without_price))},
      std::move(energy),
      {.key = "energy_of_token_j", .cell = Cell::number(step.joules_of_token(), 4)},
      {.key = "energy_of_million_tokens_kwh",
       .cell = Cell::number(step.kwh_of_tokens(kMillion), 4)},
      std::move(price),
      {.key = "price_of_trillion_tokens",
       .cell = Cell::number(step.price_of_tokens(kTrillion), 0)}};
  for (Figure& figure : figures) {
    figure.group = group;
    figure.shown = Shown::NotPage;
  }
  return figures;
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
