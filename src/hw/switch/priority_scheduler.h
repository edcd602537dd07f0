// SPDX-License-Identifier: Apache-2.0
// Chooses the queue of a port whose packet leaves next, as Ethernet switches do (IEEE 802.1Qaz):
// strict priorities first, the highest number first, and among the rest surplus round robin
// (Adiseshu, Parulkar, Varghese, SIGCOMM 1996): a queue sends until it has used up its quantum, the
// last packet as a whole, and what that was too much is taken off its next turn. Shares are those
// of deficit round robin, but nobody needs to know how large a packet is before it is cut.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace trainyard {

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
  Sizes surplus_{};  // Rest of each queue's quantum; what was sent too much is negative.
  std::size_t current_ = 0;
};

}  // namespace trainyard
