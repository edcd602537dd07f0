// SPDX-License-Identifier: Apache-2.0
// Credits of a link in the packet engine: its sender begins a data packet only while the buffer at
// the far end has room for the largest one. A packet takes its bytes of the buffer when it begins
// on the link and gives them back when its last byte has left the far end; the sender knows that
// after the latency of the link. docs/models/packet.md says what is left out.
#pragma once

#include <cstdint>
#include <vector>

#include "network/packet_parts/packet_port.h"

namespace trainyard {

struct CreditReturn {
  Picoseconds time = 0;  // When the sender knows.
  std::int64_t bytes = 0;
};

[[nodiscard]] inline bool comes_later(const CreditReturn& a, const CreditReturn& b) {
  return a.time > b.time;
}

struct LinkCredits {
  std::int64_t open = 0;  // Bytes on the line that may still be sent.
  Picoseconds flight = 0;
  Picoseconds starved_since = 0;
  Picoseconds starved_time = 0;
  std::vector<CreditReturn> returns = {};  // On their way; a heap, the earliest first.
};

}  // namespace trainyard
