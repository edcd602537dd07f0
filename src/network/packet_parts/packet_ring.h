// SPDX-License-Identifier: Apache-2.0
// A FIFO in one block of memory that doubles when it is full and never shrinks: nothing is
// allocated for an element. A ring that was never used owns no memory.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "sim/check.h"

namespace trainyard {

template <typename T>
class Ring {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  [[nodiscard]] bool empty() const { return head_ == tail_; }
  [[nodiscard]] std::uint32_t size() const { return tail_ - head_; }
  [[nodiscard]] const T& front() const { return slots_[head_ & (capacity_ - 1)]; }
  // The element that is `index` behind the front.
  [[nodiscard]] const T& at(std::uint32_t index) const {
    return slots_[(head_ + index) & (capacity_ - 1)];
  }

  void push(const T& value) {
    if (size() == capacity_) [[unlikely]] {
      grow();
    }
    slots_[tail_++ & (capacity_ - 1)] = value;
  }
  T pop() {
    DCHECK(!empty(), "nothing to take from a ring");
    return slots_[head_++ & (capacity_ - 1)];
  }

 private:
  static constexpr std::uint32_t kLeastSlots = 8;

  void grow() {
    const std::uint32_t capacity = capacity_ == 0 ? kLeastSlots : 2 * capacity_;
    CHECK(capacity > capacity_, "too many packets in one queue");
    auto larger = std::make_unique<T[]>(capacity);  // NOLINT(modernize-avoid-c-arrays)
    const std::uint32_t count = size();
    for (std::uint32_t i = 0; i < count; ++i) {
      larger[i] = at(i);
    }
    slots_ = std::move(larger);
    capacity_ = capacity;
    head_ = 0;
    tail_ = count;
  }

  // A vector would be half as large again, and its size a division away.
  std::unique_ptr<T[]> slots_;  // NOLINT(modernize-avoid-c-arrays)
  std::uint32_t capacity_ = 0;  // A power of two.
  std::uint32_t head_ = 0;      // Both run on beyond the capacity; only their lower bits count.
  std::uint32_t tail_ = 0;
};

}  // namespace trainyard
