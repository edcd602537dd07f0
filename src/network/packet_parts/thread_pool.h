// SPDX-License-Identifier: Apache-2.0
// Threads that do a task side by side again and again, every few microseconds: who waits looks
// again and again, then gives way to others, and sleeps if nothing comes for long. The caller does
// what no thread has begun when its own part is done, so that on a busy machine, where others do
// not run, nothing waits for them. All threads see in the next round what was written in one. No
// locks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace trainyard {

class ThreadPool {
 public:
  using Task = std::function<void(std::uint32_t number)>;

  // With the thread that calls do_all() there are `members`, at least one.
  explicit ThreadPool(std::uint32_t members);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // `task(number)` once for each number from 0 to less than `members`, 0 on this thread. Comes back
  // when all have been done.
  void do_all(const Task& task);

 private:
  struct alignas(64) Claim {
    std::atomic<std::uint32_t> round = 0;  // The last one in which somebody took the task.
  };

  void stand_by(std::uint32_t number);
  // Returns whether the caller is to do the task of this number in this round.
  [[nodiscard]] bool take(std::uint32_t number, std::uint32_t round);

  alignas(64) std::atomic<std::uint32_t> round_ = 0;
  bool is_over_ = false;  // These are written before the round begins.
  const Task* task_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> done_ = 0;
  alignas(64) std::vector<Claim> claims_;  // Indexed by number; not that of the caller.
  std::vector<std::thread> threads_;
};

}  // namespace trainyard
