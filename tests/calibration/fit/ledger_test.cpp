// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/fit/ledger.h"

#include <cmath>

namespace trainyard {
namespace {

using namespace literals;

CaseResult predicted_case(const std::string& name, SimTime time) {
  CaseResult made;
  made.item.name = name;
  made.item.system = name;
  made.rows.push_back({.size = 1_MiB, .measured = 10_us});
  made.rows.push_back({.size = 2_MiB, .measured = 20_us, .excluded = "a spike"});
  for (ValidationRow& row : made.rows) {
    row.predicted = {.time = time, .how = "by hand"};
  }
  return made;
}

TEST_CASE("a ledger has the rows that count of cases that were predicted") {
  CaseResult unknown;
  unknown.item.name = "unknown";
  unknown.not_covered = "no such GPU";
  const Validation shipped =
      validation_of({predicted_case("first", 9_us), unknown, predicted_case("second", 11_us)});
  Refit refit;
  refit.left_out =
      validation_of({predicted_case("first", 8_us), unknown, predicted_case("second", 12_us)});
  refit.systems = {{.system = "second", .fit = {}, .unseen = {0}, .alone = {"second"}}};
  const std::vector<LedgerRow> ledger = ledger_of(shipped, refit);
  REQUIRE(ledger.size() == 2);
  REQUIRE(ledger[0].name == "first");
  REQUIRE(ledger[0].measured == 10_us);
  REQUIRE(ledger[0].predicted == 9_us);
  REQUIRE(ledger[0].foreseen == 8_us);
  REQUIRE(ledger[0].surprise() == Approx(std::log(10.0 / 8.0)));
  REQUIRE_FALSE(ledger[0].is_alone);
  REQUIRE(ledger[1].is_alone);
}

}  // namespace
}  // namespace trainyard
