// SPDX-License-Identifier: Apache-2.0
#include "network/packet_parts/queue_times.h"

#include "sim/check.h"

namespace trainyard {

std::int64_t QueueTimes::percentile(int percent, Picoseconds end) const {
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

}  // namespace trainyard
