// SPDX-License-Identifier: Apache-2.0
// Link-level credits of InfiniBand (Architecture Specification 1.4, section 7.9): the receiver of
// each virtual lane says up to which block the sender may send. Blocks are 64 B of packet from LRH
// to VCRC; counters have 12 bits and wrap.
//
// No bytes are ever lost for lack of a buffer, so that there is nothing like headroom; but a lane
// reaches the full rate only if its buffer holds a round trip (credit_buffer()).
#pragma once

#include <cstdint>

#include "hw/packet/rdma_packet.h"
#include "sim/units.h"

namespace trainyard {

// A sender never has more blocks open at once, so that wrapped counters can be compared.
inline constexpr std::int64_t kMaxCredits = 2048;

// Blocks that keep a lane of this rate busy: a round trip, the time in which updates are made, a
// packet under way in each direction.
[[nodiscard]] inline std::int64_t credit_buffer(Bandwidth rate, SimTime delay, SimTime processing,
                                                Bytes packet) {
  __extension__ using Wide = __int128;
  constexpr Wide kBits = Wide{8} * 1'000'000'000'000;
  const SimTime loop = delay * 2 + processing;
  const Wide bytes = (Wide{rate.bits_per_second()} * loop.picoseconds() + kBits - 1) / kBits;
  return credit_blocks(Bytes(static_cast<std::int64_t>(bytes)) + packet * 2);
}

}  // namespace trainyard
