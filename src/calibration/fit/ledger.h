// SPDX-License-Identifier: Apache-2.0
// Every measured row that counts, beside what was predicted of it: with the constants of the
// profile, and with constants that were fitted to the tables of all other systems.
#pragma once

#include <string>
#include <vector>

#include "calibration/fit/refit.h"
#include "calibration/predict/validation.h"
#include "collectives/schedule/operation.h"
#include "nccl/timing/profile.h"
#include "sim/units.h"

namespace trainyard {

struct LedgerRow {
  std::string name;  // Name of the case.
  std::string system_class;
  std::string system;
  nccl::MachineKind machine;
  Operation operation = Operation::AllReduce;
  Bytes size;
  SimTime measured;
  SimTime predicted;  // With the profile.
  SimTime foreseen;   // Time predicted by a fit that has not seen the system.
  // Rests on constants that no other system shows: a network or generation of its own.
  bool is_alone = false;

  // ln(measured / foreseen).
  [[nodiscard]] double surprise() const;
};

// `refit` is of the same cases, with systems left out.
[[nodiscard]] std::vector<LedgerRow> ledger_of(const Validation& validation, const Refit& refit);

}  // namespace trainyard
