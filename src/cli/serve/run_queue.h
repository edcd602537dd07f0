// SPDX-License-Identifier: Apache-2.0
// Some run at once and some wait, first come, first served; all others are turned away.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

namespace trainyard {

// All functions may be called by any thread.
class RunQueue {
 public:
  RunQueue(std::size_t at_once, std::size_t most_waiting)
      : at_once_(at_once), most_(at_once + most_waiting) {}

  // A ticket to wait and run with; nothing where too many wait already.
  [[nodiscard]] std::optional<std::uint64_t> join();
  // Waits for the turn of a ticket for so long; returns how many must end before it begins.
  [[nodiscard]] std::size_t wait(std::uint64_t ticket, std::chrono::milliseconds time);
  // Must follow join() once; a ticket that left before is passed over.
  void leave(std::uint64_t ticket);

 private:
  [[nodiscard]] std::size_t before(std::uint64_t ticket) const;

  std::size_t at_once_;
  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable moved_;
  std::uint64_t next_ = 0;
  std::deque<std::uint64_t> tickets_;  // Those that run are the first ones.
};

}  // namespace trainyard
