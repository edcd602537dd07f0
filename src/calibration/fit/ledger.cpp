// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit/ledger.h"

#include <cmath>
#include <cstddef>
#include <set>

#include "sim/check.h"

namespace trainyard {

double LedgerRow::surprise() const {
  return std::log(measured / foreseen);
}

std::vector<LedgerRow> ledger_of(const Validation& validation, const Refit& refit) {
  CHECK(refit.left_out && refit.left_out->cases.size() == validation.cases.size(),
        "the same cases, with systems left out");
  std::set<std::string> alone;
  for (const LeftOut& system : refit.systems) {
    alone.insert(system.alone.begin(), system.alone.end());
  }
  std::vector<LedgerRow> ledger;
  for (std::size_t index = 0; index < validation.cases.size(); ++index) {
    const CaseResult& shipped = validation.cases[index];
    const CaseResult& left_out = refit.left_out->cases[index];
    if (!shipped.not_covered.empty() || !left_out.not_covered.empty()) {
      continue;
    }
    for (std::size_t row = 0; row < shipped.rows.size(); ++row) {
      const ValidationRow& one = shipped.rows[row];
      if (!one.excluded.empty()) {
        continue;
      }
      ledger.push_back({.name = shipped.item.name,
                        .system_class = shipped.item.system_class,
                        .system = shipped.item.system,
                        .machine = one.predicted->machine,
                        .operation = shipped.operation,
                        .size = one.size,
                        .measured = one.measured,
                        .predicted = one.predicted->time,
                        .foreseen = left_out.rows[row].predicted->time,
                        .is_alone = alone.contains(shipped.item.name)});
    }
  }
  return ledger;
}

}  // namespace trainyard
