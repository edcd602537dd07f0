// SPDX-License-Identifier: Apache-2.0
// Keeps what is due in which window of time: a ring of lists for the windows that come next and a
// heap for those beyond. Taking windows in rising order costs nothing for windows in which nothing
// is due. A list that was taken is the next one to be filled, so that the same memory is used again
// while a cache still has it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <queue>
#include <type_traits>
#include <utility>
#include <vector>

#include "network/packet_parts/packet_port.h"
#include "sim/check.h"

namespace trainyard {

// Leaves what a vector makes room for as it is: it is written where it lies, once. Only for types
// that need no constructor to live.
template <typename T>
struct UnwrittenAllocator : std::allocator<T> {
  void construct(T* /*place*/) { static_assert(std::is_trivially_copyable_v<T>); }
  template <typename... Values>
  void construct(T* place, Values&&... values) {
    std::construct_at(place, std::forward<Values>(values)...);
  }
};

template <typename Item>
class WindowCalendar {
 public:
  using Window = std::uint64_t;
  using Items = std::vector<Item, UnwrittenAllocator<Item>>;

  // `window` must not be before the last one taken; the item is handed out with it, behind all that
  // were added for it before.
  void add(Window window, const Item& item) {
    if (is_near(window)) [[likely]] {
      add_near(window) = item;
    } else {
      CHECK(window >= base_, "an item for a window that is over");  // Which is far, modulo 2^64.
      far_.push({.window = window, .order = added_++, .item = item});
    }
  }
  // Returns whether it is one of those that come next; then an item may be written where it will
  // lie, all of it. Read in other pieces than it was written in just before, it would cost more
  // than all else here.
  [[nodiscard]] bool is_near(Window window) const { return window - base_ < kSlots; }
  [[nodiscard]] Item& add_near(Window window) {
    Items& slot = slots_[window % kSlots];
    if (slot.capacity() == 0) [[unlikely]] {
      begin(slot, window);
    }
    return slot.emplace_back();
  }

  // The next window in which anything is due; kNeverWindow if there is none.
  [[nodiscard]] Window next() const {
    const std::size_t first = base_ % kSlots;
    for (std::size_t step = 0; step <= kWords; ++step) {
      const std::size_t word = (first / 64 + step) % kWords;
      std::uint64_t bits = occupied_[word];
      if (step == 0) {
        bits &= ~std::uint64_t{0} << (first % 64);
      } else if (step == kWords) {
        bits &= ~(~std::uint64_t{0} << (first % 64));
      }
      if (bits != 0) {
        const std::size_t slot = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        return base_ + (slot + kSlots - first) % kSlots;
      }
    }
    return far_.empty() ? kNeverWindow : far_.top().window;
  }

  // Returns how many items are due in `window`, of those that come next.
  [[nodiscard]] std::size_t due(Window window) const {
    return window - base_ < kSlots ? slots_[window % kSlots].size() : 0;
  }

  // Replaces `items` by what is due in `window`, which must be next(). An item that is added for
  // the same window afterwards is due again.
  void take(Window window, Items& items) {
    base_ = window;
    while (!far_.empty() && far_.top().window - base_ < kSlots) {
      add_near(far_.top().window) = far_.top().item;
      far_.pop();
    }
    items.clear();
    if (Items& slot = slots_[window % kSlots]; !slot.empty()) {
      spare_.push_back(std::move(items));
      items = std::move(slot);
      slot = Items();
    }
    occupied_[window % kSlots / 64] &= ~(std::uint64_t{1} << (window % 64));
  }

  // Everything in it, window by window.
  [[nodiscard]] std::vector<Item> items() const {
    std::vector<Item> all;
    for (Window window = base_; window < base_ + kSlots; ++window) {
      const Items& slot = slots_[window % kSlots];
      all.insert(all.end(), slot.begin(), slot.end());
    }
    for (auto far = far_; !far.empty(); far.pop()) {
      all.push_back(far.top().item);
    }
    return all;
  }

  // Takes out what `is_meant`.
  template <typename Predicate>
  void erase_if(const Predicate& is_meant) {
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      std::erase_if(slots_[slot], is_meant);
      if (slots_[slot].empty()) {
        slots_[slot] = Items();
        occupied_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
      }
    }
    std::priority_queue<Far> far;
    for (; !far_.empty(); far_.pop()) {
      if (!is_meant(far_.top().item)) {
        far.push(far_.top());
      }
    }
    far_ = std::move(far);
  }

  // Forgets everything; windows are counted from `base` on.
  void reset(Window base) {
    for (Items& slot : slots_) {
      slot = Items();
    }
    occupied_.fill(0);
    far_ = {};
    base_ = base;
  }

 private:
  static constexpr std::size_t kSlots = 256;
  static constexpr std::size_t kWords = kSlots / 64;
  struct Far {
    Window window;
    std::uint64_t order;
    Item item;

    // Orders a heap whose first comes last.
    friend bool operator<(const Far& a, const Far& b) {
      return a.window != b.window ? a.window > b.window : a.order > b.order;
    }
  };

  // The first item of the window is added.
  void begin(Items& slot, Window window) {
    occupied_[window % kSlots / 64] |= std::uint64_t{1} << (window % 64);
    if (!spare_.empty()) {
      slot = std::move(spare_.back());
      spare_.pop_back();
    }
    slot.reserve(kLeast);  // A list without any memory is one that nobody has begun.
  }

  static constexpr std::size_t kLeast = 8;
  // The window modulo their number. What has nothing has no memory either: it is replaced by
  // Items(), as assigning {} would keep the memory.
  std::vector<Items> slots_{kSlots};
  std::vector<Items> spare_;  // Empty; the one that was used last at the end.
  std::array<std::uint64_t, kWords> occupied_{};
  std::priority_queue<Far> far_;
  std::uint64_t added_ = 0;
  Window base_ = 0;
};

}  // namespace trainyard
