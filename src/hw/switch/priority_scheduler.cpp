// SPDX-License-Identifier: Apache-2.0
#include "hw/switch/priority_scheduler.h"

#include <algorithm>
#include <bit>

#include "sim/check.h"

namespace trainyard {

PriorityScheduler::PriorityScheduler(std::uint8_t strict, const Sizes& quanta)
    : strict_(strict), quanta_(quanta) {
  for (std::size_t i = 0; i < kQueues; ++i) {
    CHECK((strict >> i & 1U) != 0 || quanta[i] > 0, "a weighted queue without a quantum");
  }
}

int PriorityScheduler::pick(std::uint8_t ready) {
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

void PriorityScheduler::sent(int queue, std::int64_t bytes) {
  if ((strict_ >> queue & 1) == 0) {
    surplus_[static_cast<std::size_t>(queue)] -= bytes;
  }
}

}  // namespace trainyard
