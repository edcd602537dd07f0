// SPDX-License-Identifier: Apache-2.0
// Chooses the lane whose packet leaves a port next.
//
// `LaneArbiter` is InfiniBand's (Architecture Specification 1.4, section 7.6.9): two tables of
// lanes with weights in units of 64 B. An entry may send while any of its weight is left, the last
// packet as a whole. The high table comes first, until it has sent its limit while the low one
// waited.
//
// `PriorityScheduler` is that of Ethernet switches (IEEE 802.1Qaz): strict priorities first, the
// highest number first, and among the rest surplus round robin (Adiseshu, Parulkar, Varghese,
// SIGCOMM 1996): a queue sends until it has used up its quantum, the last packet as a whole, and
// what that was too much is taken off its next turn. Shares are those of deficit round robin, but
// nobody needs to know how large a packet is before it is cut.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/check.h"
#include "sim/units.h"

namespace trainyard {

class LaneArbiter {
 public:
  struct Entry {
    std::uint8_t lane = 0;
    std::uint8_t weight = 0;  // In units of 64 B; 0 skips the entry.
  };
  static constexpr int kNoLane = -1;
  static constexpr int kUnlimited = 255;

  // `high_limit`: units of 4,096 B that the high table may send while the low one waits; 255 never
  // gives way, 0 does after each packet.
  LaneArbiter(std::vector<Entry> high, std::vector<Entry> low, int high_limit);

  // A lane whose bit is set in `ready` (it has a packet and credit for it), or kNoLane. The packet,
  // of `blocks[lane]` blocks, is taken as sent.
  int pick(std::uint32_t ready, const std::array<std::int64_t, 16>& blocks);

 private:
  struct Table {
    std::vector<Entry> entries;
    std::size_t current = 0;
    std::int64_t left = 0;  // Rest of the weight of `current`.

    // The lane whose turn it is, which keeps the turn; kNoLane if none of them is ready.
    int turn(std::uint32_t ready);
  };

  Table high_;
  Table low_;
  std::int64_t limit_;  // In blocks.
  std::int64_t since_low_ = 0;
};

class PriorityScheduler {
 public:
  static constexpr int kNone = -1;
  static constexpr std::size_t kQueues = 8;
  using Sizes = std::array<std::int64_t, kQueues>;

  // Bit i of `strict` makes queue i strict. `quanta` are the bytes that a weighted queue may send
  // in its turn; each must be positive, and should not be below the largest packet.
  PriorityScheduler(std::uint8_t strict, const Sizes& quanta);

  // The queue whose turn it is, of those whose bit is set in `ready` (they have a packet and may
  // send it), or kNone. It keeps the turn until sent() has used it up.
  int pick(std::uint8_t ready);
  // A packet of the queue has been sent.
  void sent(int queue, std::int64_t bytes);

 private:
  std::uint8_t strict_;
  Sizes quanta_;
  Sizes surplus_{};  // Rest of each lane's quantum; what was sent too much is negative.
  std::size_t current_ = 0;
};

}  // namespace trainyard
