// SPDX-License-Identifier: Apache-2.0
// A FIFO in one block of memory that doubles when it is full and never shrinks: nothing is
// allocated for an element. An empty ring that was never used owns no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "sim/check.h"

namespace trainyard {

template <typename T>
class Ring {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  [[nodiscard]] bool empty() const { return head_ == tail_; }
  [[nodiscard]] std::uint32_t size() const { return tail_ - head_; }
  [[nodiscard]] const T& front() const { return slots_[head_ & mask()]; }
  [[nodiscard]] T& front() { return slots_[head_ & mask()]; }
  // The element that is `index` behind the front.
  [[nodiscard]] const T& at(std::uint32_t index) const { return slots_[(head_ + index) & mask()]; }

  void push(const T& value) {
    if (size() == slots_.size()) [[unlikely]] {
      grow();
    }
    slots_[tail_ & mask()] = value;
    ++tail_;
  }
  T pop() {
    DCHECK(!empty(), "nothing to take from a ring");
    const T value = slots_[head_ & mask()];
    ++head_;
    return value;
  }

  [[nodiscard]] std::size_t memory() const { return slots_.capacity() * sizeof(T); }

 private:
  static constexpr std::size_t kLeastSlots = 8;

  [[nodiscard]] std::uint32_t mask() const { return static_cast<std::uint32_t>(slots_.size()) - 1; }
  void grow() {
    std::vector<T> larger(slots_.empty() ? kLeastSlots : 2 * slots_.size());
    const std::uint32_t count = size();
    for (std::uint32_t i = 0; i < count; ++i) {
      larger[i] = at(i);
    }
    slots_.swap(larger);
    head_ = 0;
    tail_ = count;
  }

  std::vector<T> slots_;    // A power of two of them.
  std::uint32_t head_ = 0;  // Both run on beyond the size; only their lower bits count.
  std::uint32_t tail_ = 0;
};

}  // namespace trainyard
