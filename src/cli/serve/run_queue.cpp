// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/run_queue.h"

#include <algorithm>

namespace trainyard {

std::optional<std::uint64_t> RunQueue::join() {
  const std::scoped_lock lock(mutex_);
  if (tickets_.size() >= most_) {
    return std::nullopt;
  }
  tickets_.push_back(next_);
  return next_++;
}

std::size_t RunQueue::wait(std::uint64_t ticket, std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  moved_.wait_for(lock, time, [&] { return before(ticket) == 0; });
  return before(ticket);
}

void RunQueue::leave(std::uint64_t ticket) {
  {
    const std::scoped_lock lock(mutex_);
    std::erase(tickets_, ticket);
  }
  moved_.notify_all();
}

std::size_t RunQueue::before(std::uint64_t ticket) const {
  const auto place =
      static_cast<std::size_t>(std::ranges::find(tickets_, ticket) - tickets_.begin());
  return place + 1 - std::min(place + 1, at_once_);
}

}  // namespace trainyard
