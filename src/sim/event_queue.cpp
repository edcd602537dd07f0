// SPDX-License-Identifier: Apache-2.0
#include "sim/event_queue.h"

#include <algorithm>

namespace trainyard {

bool EventQueue::advance_floor(SimTime limit) {
  const auto lowest = static_cast<std::size_t>(std::countr_zero(occupied_));
  std::vector<Event>& bucket = buckets_[lowest];
  SimTime min = bucket.front().time;
  SimTime max = min;
  for (const Event& event : bucket) {
    min = std::min(min, event.time);
    max = std::max(max, event.time);
  }
  if (min > limit) {
    return false;
  }
  floor_ = min;
  occupied_ &= ~(std::uint64_t{1} << lowest);
  if (min == max) {  // The usual case in collectives: all of them are due.
    buckets_[0].swap(bucket);
    occupied_ |= 1U;
    return true;
  }
  for (const Event& event : bucket) {
    const auto target = bucket_of(static_cast<std::uint64_t>(event.time.picoseconds()));
    buckets_[target].push_back(event);
    occupied_ |= std::uint64_t{1} << target;
  }
  bucket.clear();
  return true;
}

}  // namespace trainyard
