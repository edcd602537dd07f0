// SPDX-License-Identifier: Apache-2.0
#include "hw/control/receiver_credit.h"

#include <algorithm>

#include "hw/control/control_fields.h"

namespace trainyard {
namespace {

Bytes times(Bytes size, double factor) {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(size.count()) * factor));
}

}  // namespace

void CreditControl::fields(Fields& fields, CreditProfile& profile) {
  fields.required("quantum", profile.quantum, control::kSomeBytes, "Credit of one grant.");
  fields.required("window", profile.window, Cited{Number{0.01, control::kMany}},
                  "Credit under way, in units of line rate x base RTT.");
  fields.required("speculative", profile.speculative, control::kFactor,
                  "What is sent before any credit, in the same units.");
  fields.required("patience", profile.patience, control::kSomeTime,
                  "Time before a request is repeated, and what is missing counts as lost.");
}

CreditSettings CreditControl::settings(const CreditProfile& profile, const PortTerms& port) {
  return {.line = port.line,
          .quantum = profile.quantum,
          .window = std::max(times(bdp(port), profile.window), profile.quantum),
          .speculative = times(bdp(port), profile.speculative),
          .patience = profile.patience};
}

}  // namespace trainyard
