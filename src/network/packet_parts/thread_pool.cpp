// SPDX-License-Identifier: Apache-2.0
#include "network/packet_parts/thread_pool.h"

#include "sim/check.h"

namespace trainyard {
namespace {

// Windows of a large fabric follow each other within tens of microseconds.
constexpr int kLooks = 200;
constexpr int kYields = 2000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Looks until the value is no longer `old`. Whether it changed before patience ran out.
bool looks_changed(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int i = 0; i < kLooks + kYields; ++i) {
    if (value.load(std::memory_order_acquire) != old) {
      return true;
    }
    if (i < kLooks) {
      relax();
    } else {
      std::this_thread::yield();
    }
  }
  return false;
}

}  // namespace

ThreadPool::ThreadPool(std::uint32_t members) : claims_(members) {
  CHECK(members > 0, "a pool without threads");
  for (std::uint32_t number = 1; number < members; ++number) {
    threads_.emplace_back(&ThreadPool::stand_by, this, number);
  }
}

ThreadPool::~ThreadPool() {
  is_over_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void ThreadPool::do_all(const Task& task) {
  task_ = &task;
  done_.store(0, std::memory_order_relaxed);
  const std::uint32_t round = round_.fetch_add(1, std::memory_order_release) + 1;
  round_.notify_all();
  task(0);
  const auto others = static_cast<std::uint32_t>(threads_.size());
  for (std::uint32_t number = 1; number <= others; ++number) {
    if (take(number, round)) {
      task(number);
      done_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  for (std::uint32_t done = done_.load(std::memory_order_acquire); done != others;
       done = done_.load(std::memory_order_acquire)) {
    static_cast<void>(looks_changed(done_, done));
  }
}

void ThreadPool::stand_by(std::uint32_t number) {
  std::uint32_t seen = 0;
  while (true) {
    if (!looks_changed(round_, seen)) {
      round_.wait(seen, std::memory_order_acquire);
    }
    // Rounds may have passed without this thread.
    seen = round_.load(std::memory_order_acquire);
    if (take(number, seen)) {
      if (is_over_) {
        return;
      }
      (*task_)(number);
      done_.fetch_add(1, std::memory_order_release);
    }
  }
}

bool ThreadPool::take(std::uint32_t number, std::uint32_t round) {
  std::uint32_t before = round - 1;
  return claims_[number].round.compare_exchange_strong(before, round, std::memory_order_acq_rel);
}

}  // namespace trainyard
