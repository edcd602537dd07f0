// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/steps/cost_report.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace trainyard {
namespace {

PricedStep priced_example() {
  PricedStep priced;
  priced.cluster.costs.currency = "EUR";
  priced.cluster.costs.years = 3.0;
  priced.cluster.totals.watts = 100.0;
  priced.cluster.totals.price = 1.0;
  priced.cluster.totals.without_watts = {"NIC", "CPU"};
  priced.step = {.tokens = 1000.0, .busy = 0.5, .joules = 2000.0, .capital = 4.0};
  return priced;
}

std::string rendered(const PricedStep& priced, Format format) {
  Document document;
  for (Figure& figure : cost_figures(priced, "cost")) {
    document.add(std::move(figure));
  }
  return render(document, format);
}

bool has_note(const ClusterCosts& costs, const std::string& part) {
  const std::vector<std::string> notes = cost_notes(costs);
  return std::any_of(notes.begin(), notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("a line of costs has values where they are known, and the names of what is not",
          "[cost-report]") {
  const std::string csv = rendered(priced_example(), Format::Csv);
  REQUIRE(csv ==
          "currency,without_watts,without_price,energy_of_step_kj,energy_of_token_j,"
          "energy_of_million_tokens_kwh,price_of_million_tokens,price_of_trillion_tokens\n"
          "EUR,NIC CPU,,2,2,0.5555555555555556,4000,4e+09\n");
  const std::string empty = rendered({}, Format::Csv);
  REQUIRE(empty.substr(empty.find('\n') + 1) == ",,,,,,,\n");
}

TEST_CASE("energy and cost that are unknown are said to be", "[cost-report]") {
  REQUIRE(rendered(priced_example(), Format::Table) ==
          "energy                         2.00 kJ, 2.0000 J for a token\n"
          "cost                      4000.0000 EUR for a million tokens, 4000000000 for a "
          "trillion\n");
  REQUIRE(rendered({}, Format::Table) ==
          "energy                      unknown: no part says its watts\n"
          "cost                        unknown: no prices are shipped; --prices FILE has them\n");
}

TEST_CASE("notes name what is in no sum", "[cost-report]") {
  ClusterCosts costs = priced_example().cluster;
  REQUIRE(has_note(costs, "not in the power, as nobody says their watts: NIC, CPU"));
  REQUIRE(has_note(costs, "energy is in no cost"));
  REQUIRE_FALSE(has_note(costs, "their years"));
  costs.costs.years.reset();
  REQUIRE(has_note(costs, "parts are in no cost of a token, as nobody says their years"));
  costs.costs.currency.clear();
  REQUIRE_FALSE(has_note(costs, "in no cost"));
}

}  // namespace trainyard
