// SPDX-License-Identifier: Apache-2.0
// A monotone radix heap of events: earliest time first, first pushed first among equal times.
//
// The floor is the time of the last event popped; nothing may be pushed below it. Bucket b > 0
// holds the events whose time differs from the floor first (from the top) in bit b - 1, bucket 0
// those at the floor. Thus all of bucket b is later than all of bucket a < b. When bucket 0 is
// empty, the floor moves to the least time m of the lowest bucket that is not empty, and that
// bucket is sharded to lower ones, in order. Higher buckets stay right, since m and the old floor
// agree in all bits above. Two events of equal time are always in the same bucket, in the order of
// their push, so ties are first in, first out. An event moves down at most 63 times; in practice a
// few.
//
// Ahuja, Mehlhorn, Orlin, Tarjan, "Faster Algorithms for the Shortest Path Problem", JACM 37
// (1990).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/event.h"

namespace trainyard {

class EventQueue {
 public:
  // The time must not be before that of the last event popped.
  void push(const Event& event) {
    const auto time = static_cast<std::uint64_t>(event.time.picoseconds());
    CHECK(event.time >= floor_, "an event was scheduled in the past");
    const auto bucket = bucket_of(time);
    buckets_[bucket].push_back(event);
    occupied_ |= std::uint64_t{1} << bucket;
    ++size_;
  }

  // The earliest event, if it is not later than `limit`. The floor never moves past `limit`.
  std::optional<Event> pop(SimTime limit) {
    if (size_ == 0) {
      return std::nullopt;
    }
    if ((occupied_ & 1U) == 0) {
      if (!advance_floor(limit)) {
        return std::nullopt;
      }
    } else if (floor_ > limit) {
      return std::nullopt;
    }
    std::vector<Event>& now = buckets_[0];
    const Event event = now[head_++];
    if (head_ == now.size()) {
      now.clear();
      head_ = 0;
      occupied_ &= ~std::uint64_t{1};
    }
    --size_;
    return event;
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  [[nodiscard]] std::size_t bucket_of(std::uint64_t time) const {
    return static_cast<std::size_t>(
        std::bit_width(time ^ static_cast<std::uint64_t>(floor_.picoseconds())));
  }
  bool advance_floor(SimTime limit);

  std::array<std::vector<Event>, 64> buckets_;  // Times are not negative: 63 bits and equality.
  std::uint64_t occupied_ = 0;                  // Bit b is set if bucket b is not empty.
  std::size_t head_ = 0;                        // First event of bucket 0 not yet popped.
  std::size_t size_ = 0;
  SimTime floor_;
};

}  // namespace trainyard
