// SPDX-License-Identifier: Apache-2.0
// Chooses the queue of a port whose packet leaves next, as Ethernet switches do (IEEE 802.1Qaz):
// strict priorities first, the highest number first, and among the rest surplus round robin
// (Adiseshu, Parulkar, Varghese, SIGCOMM 1996): a queue sends until it has used up its quantum, the
// last packet as a whole, and what that was too much is taken off its next turn. Shares are those
// of deficit round robin, but nobody needs to know how large a packet is before it is cut.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "sim/check.h"

namespace trainyard {

class PriorityScheduler {
 public:
  static constexpr int kNone = -1;
  static constexpr std::size_t kQueues = 8;
  using Sizes = std::array<std::int64_t, kQueues>;

  // Bit i of `strict` makes queue i strict. `quanta` are the bytes that a weighted queue may send
  // in its turn; each must be positive, and should not be below the largest packet.
  PriorityScheduler(std::uint8_t strict, const Sizes& quanta) : strict_(strict), quanta_(quanta) {
    for (std::size_t i = 0; i < kQueues; ++i) {
      CHECK((strict >> i & 1U) != 0 || quanta[i] > 0, "a weighted queue without a quantum");
    }
  }

  // The queue whose turn it is, of those whose bit is set in `ready` (they have a packet and may
  // send it), or kNone. It keeps the turn until sent() has used it up.
  int pick(std::uint8_t ready) {
    const unsigned strict = ready & strict_;
    if (strict != 0) {
      return static_cast<int>(std::bit_width(strict)) - 1;
    }
    if (ready == 0) {
      return kNone;
    }
    const auto is_ready = [&](std::size_t i) { return (ready >> i & 1U) != 0; };
    while (!is_ready(current_) || surplus_[current_] <= 0) {
      // A queue that has nothing to send saves nothing.
      surplus_[current_] =
          is_ready(current_) ? surplus_[current_] : std::min<std::int64_t>(surplus_[current_], 0);
      current_ = (current_ + 1) % kQueues;
      surplus_[current_] += is_ready(current_) ? quanta_[current_] : 0;
    }
    return static_cast<int>(current_);
  }
  // A packet of the queue has been sent.
  void sent(int queue, std::int64_t bytes) {
    if ((strict_ >> queue & 1) == 0) {
      surplus_[static_cast<std::size_t>(queue)] -= bytes;
    }
  }

 private:
  std::uint8_t strict_;
  Sizes quanta_;
  Sizes surplus_{};  // Rest of each queue's quantum; what was sent too much is negative.
  std::size_t current_ = 0;
};

}  // namespace trainyard
