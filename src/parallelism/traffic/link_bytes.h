// SPDX-License-Identifier: Apache-2.0
// Bytes on links, by what they are for.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "sim/ids.h"
#include "sim/units.h"

namespace trainyard {

// The bytes of one purpose: "tensor", "context", "expert", "data" or "pipeline".
struct PurposeBytes {
  std::string purpose;
  Bytes bytes;

  friend auto operator<=>(const PurposeBytes&, const PurposeBytes&) = default;
};

struct LinkTraffic {
  LinkId link;
  std::vector<PurposeBytes> parts;  // Parts by name; at least one, each more than nothing.
  [[nodiscard]] Bytes total() const {
    Bytes sum;
    for (const PurposeBytes& part : parts) {
      sum += part.bytes;
    }
    return sum;
  }
};

}  // namespace trainyard
