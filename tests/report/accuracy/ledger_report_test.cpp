// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/accuracy/ledger_report.h"

#include <vector>

#include "support/ledgers.h"

namespace trainyard {
namespace {

using namespace literals;

std::vector<LedgerRow> small_ledger() {
  std::vector<LedgerRow> ledger;
  for (const char* const system : {"one", "two", "three"}) {
    for (const Bytes size : {Bytes(8), 1_MiB, 1_GiB}) {
      LedgerRow row = ledger_row(system, size, system == std::string("one") ? 0.5 : 0.1);
      row.is_alone = system == std::string("three");
      ledger.push_back(row);
    }
  }
  return ledger;
}

TEST_CASE("a line of the ledger has the interval that other systems give") {
  const std::string csv = ledger_csv(small_ledger());
  // From the others 0 to 10 % more; it took 65 % more.
  REQUIRE(csv.find("one-case,class-one,one,hopper,nvswitch,none,all_reduce,8,1648.72,1000,1000,"
                   "1000,1105.17,false,false\n") != std::string::npos);
  REQUIRE(csv.find("three-case,class-three,three,hopper,nvswitch,none,all_reduce,8,1105.17,1000,"
                   "1000,1000,1648.72,true,true\n") != std::string::npos);
}

TEST_CASE("the summary of a ledger has a line for each class, and all") {
  const Table table = coverage_table(small_ledger());
  const auto text = [&](std::size_t row) {
    std::string line;
    for (const Cell& cell : table.rows().at(row)) {
      line += cell.text + "|";
    }
    return line;
  };
  REQUIRE(table.rows().size() == 4);
  REQUIRE(text(0).starts_with("all|3|9|10.5 %|10.5 %|10.5 %|"));
  REQUIRE(text(1) == "class-one|1|3|64.9 %|64.9 %|64.9 %|0 %|");
}

}  // namespace
}  // namespace trainyard
