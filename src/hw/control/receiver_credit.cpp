// SPDX-License-Identifier: Apache-2.0
#include "hw/control/receiver_credit.h"

#include <algorithm>

#include "hw/control/control_reader.h"

namespace trainyard {
namespace {

Bytes times(Bytes size, double factor) {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(size.count()) * factor));
}

}  // namespace

CreditProfile CreditControl::read(const ControlReader& reader) {
  return {.quantum = reader.some_bytes("quantum"),
          .window = reader.number("window", 0.01, ControlReader::kMany),
          .speculative = reader.number("speculative", 0.0, ControlReader::kMany),
          .patience = reader.some_time("patience")};
}

CreditSettings CreditControl::settings(const CreditProfile& profile, const PortTerms& port) {
  return {.line = port.line,
          .quantum = profile.quantum,
          .window = std::max(times(bdp(port), profile.window), profile.quantum),
          .speculative = times(bdp(port), profile.speculative),
          .patience = profile.patience};
}

}  // namespace trainyard
