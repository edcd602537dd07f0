// SPDX-License-Identifier: Apache-2.0
// A queue with a single producer and a single consumer, from one worker to another one: what is
// pushed in a window is taken in a later one. Both ends may be used at the same time, because
// neither writes what the other reads before the window is over. A queue that was never used owns
// no memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace trainyard {

template <typename T>
class SpscQueue {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SpscQueue() = default;
  SpscQueue(SpscQueue&&) noexcept = default;
  SpscQueue& operator=(SpscQueue&&) noexcept = default;
  SpscQueue(const SpscQueue&) = delete;
  SpscQueue& operator=(const SpscQueue&) = delete;
  ~SpscQueue() {
    while (first_) {  // One after the other: a chain would be taken down by recursion.
      first_ = std::move(first_->next);
    }
  }

  void push(const T& value) {
    if (pushed_ == kItems) {
      auto chunk = std::make_unique<Chunk>();
      Chunk* const next = chunk.get();
      (last_ == nullptr ? first_ : last_->next) = std::move(chunk);
      last_ = next;
      pushed_ = 0;
    }
    last_->items[pushed_++] = value;
  }
  // There must be something, of an earlier window.
  T pop() {
    if (popped_ == kItems) {
      first_ = std::move(first_->next);
      popped_ = 0;
    }
    return first_->items[popped_++];
  }

 private:
  static constexpr std::uint32_t kItems = 16;
  struct Chunk {
    std::array<T, kItems> items;
    std::unique_ptr<Chunk> next;
  };

  std::unique_ptr<Chunk> first_;  // Chunk of the taking end; its last chunk has only been emptied.
  std::uint32_t popped_ = 0;
  Chunk* last_ = nullptr;  // Chunk of the pushing end.
  std::uint32_t pushed_ = kItems;
};

}  // namespace trainyard
