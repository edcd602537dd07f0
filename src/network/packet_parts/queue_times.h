// SPDX-License-Identifier: Apache-2.0
// Counts for how long a queue had how many bytes, for percentiles over time.
//
// Lengths up to 7 bytes have a bucket each; above there are four from one power of two to the next.
// A percentile is the end of its bucket: at most a quarter above the length itself.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "network/packet_parts/packet_port.h"
#include "sim/check.h"

namespace trainyard {

class QueueTimes {
 public:
  // The queue has `bytes` from `now` on; it had none from 0 on. Times do not fall.
  void change(Picoseconds now, std::int64_t bytes) {
    times_[bucket_] += now - since_;
    since_ = now;
    bucket_ = bucket_of(bytes);
  }

  // The length above which the queue was not for `percent` of the time from 0 to `end`, rounded up
  // to the end of its bucket. `end` is not before the last change.
  [[nodiscard]] std::int64_t percentile(int percent, Picoseconds end) const {
    CHECK(percent > 0 && percent <= 100, "no percentile");
    CHECK(end >= since_, "a queue changed after the end");
    // The share of the time, rounded up; in two parts, as the product may be too large.
    const Picoseconds share = end / 100 * percent + (end % 100 * percent + 99) / 100;
    Picoseconds time = 0;
    for (std::uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      time += times_[bucket] + (bucket == bucket_ ? end - since_ : 0);
      if (time >= share) {
        return end_of(bucket);
      }
    }
    CHECK(false, "the time of a queue has a gap");
  }

  static constexpr std::uint32_t bucket_of(std::int64_t bytes) {
    const auto length = static_cast<std::uint64_t>(bytes);
    const auto bits = static_cast<int>(std::bit_width(length));
    const int shift = bits > 3 ? bits - 3 : 0;
    return static_cast<std::uint32_t>(4 * shift) + static_cast<std::uint32_t>(length >> shift);
  }
  // The greatest length in it.
  static constexpr std::int64_t end_of(std::uint32_t bucket) {
    const std::uint32_t shift = bucket < 8 ? 0 : bucket / 4 - 1;
    const std::uint64_t head = bucket - 4 * shift;
    return static_cast<std::int64_t>(((head + 1) << shift) - 1);
  }

 private:
  // The buckets reach to 2^40 bytes, far more than any buffer.
  static constexpr std::size_t kBuckets = 160;

  std::array<Picoseconds, kBuckets> times_{};
  Picoseconds since_ = 0;
  std::uint32_t bucket_ = 0;
};

}  // namespace trainyard
