// SPDX-License-Identifier: Apache-2.0
// Ledgers made by hand.
#pragma once

#include <cmath>
#include <string>

#include "calibration/fit/ledger.h"

namespace trainyard {

inline const nccl::MachineKind kLedgerHopper{
    .gpu = "hopper", .scale_up = "nvswitch", .network = "none"};
inline const nccl::MachineKind kLedgerVolta{.gpu = "volta", .scale_up = "nvlink", .network = "tcp"};

// A row of one system, measured exp(surprise) times as long as the 1,000 us that were foreseen.
inline LedgerRow ledger_row(const std::string& system, Bytes size, double surprise) {
  const SimTime foreseen(1'000'000'000);
  return {.name = system + "-case",
          .system_class = "class-" + system,
          .system = system,
          .machine = kLedgerHopper,
          .size = size,
          .measured = SimTime(std::llround(1e9 * std::exp(surprise))),
          .predicted = foreseen,
          .foreseen = foreseen};
}

}  // namespace trainyard
