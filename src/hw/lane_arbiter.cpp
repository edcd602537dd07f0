// SPDX-License-Identifier: Apache-2.0
#include "hw/lane_arbiter.h"

#include <utility>

namespace trainyard {
namespace {

constexpr std::int64_t kBlocksOfLimit = 64;  // 4,096 B

}  // namespace

LaneArbiter::LaneArbiter(std::vector<Entry> high, std::vector<Entry> low, int high_limit)
    : high_{.entries = std::move(high)},
      low_{.entries = std::move(low)},
      limit_(high_limit * kBlocksOfLimit) {
  CHECK(high_limit >= 0 && high_limit <= kUnlimited, "no limit of the high table");
  limit_ = high_limit == kUnlimited ? std::int64_t{1} << 62 : limit_;
  for (Table* table : {&high_, &low_}) {
    for (const Entry& entry : table->entries) {
      CHECK(entry.lane < 15, "no data lane");
    }
    table->left = table->entries.empty() ? 0 : table->entries[0].weight;
  }
}

int LaneArbiter::Table::turn(std::uint32_t ready) {
  for (std::size_t tried = 0; tried <= entries.size() && !entries.empty(); ++tried) {
    const Entry& entry = entries[current];
    if (left > 0 && (ready >> entry.lane & 1U) != 0) {
      return entry.lane;
    }
    current = (current + 1) % entries.size();
    left = entries[current].weight;
  }
  return kNoLane;
}

int LaneArbiter::pick(std::uint32_t ready, const std::array<std::int64_t, 16>& blocks) {
  const int high = high_.turn(ready);
  const int low = low_.turn(ready);
  if (high == kNoLane && low == kNoLane) {
    return kNoLane;
  }
  const bool gives_way = low != kNoLane && since_low_ > limit_;
  const bool is_high = high != kNoLane && !gives_way;
  const int lane = is_high ? high : low;
  const std::int64_t size = blocks[static_cast<std::size_t>(lane)];
  (is_high ? high_ : low_).left -= size;
  since_low_ = is_high && low != kNoLane ? since_low_ + size : 0;
  return lane;
}

PriorityScheduler::PriorityScheduler(std::uint8_t strict, const Sizes& quanta)
    : strict_(strict), quanta_(quanta) {
  for (std::size_t i = 0; i < kQueues; ++i) {
    CHECK((strict >> i & 1U) != 0 || quanta[i] > 0, "a weighted queue without a quantum");
  }
}

int PriorityScheduler::pick(const Sizes& heads, std::uint8_t paused) {
  const auto is_ready = [&](std::size_t i) { return heads[i] > 0 && (paused >> i & 1U) == 0; };
  bool has_weighted = false;
  for (std::size_t i = kQueues; i-- > 0;) {
    const bool is_strict = (strict_ >> i & 1U) != 0;
    if (is_ready(i) && is_strict) {
      return static_cast<int>(i);
    }
    has_weighted |= is_ready(i) && !is_strict;
  }
  while (has_weighted) {
    const std::size_t i = current_;
    const bool is_weighted = (strict_ >> i & 1U) == 0;
    if (is_weighted && is_ready(i)) {
      deficit_[i] += has_turn_ ? 0 : quanta_[i];
      has_turn_ = true;
      if (heads[i] <= deficit_[i]) {
        deficit_[i] -= heads[i];
        return static_cast<int>(i);
      }
    } else if (heads[i] == 0) {
      deficit_[i] = 0;  // An empty queue saves nothing.
    }
    current_ = (current_ + 1) % kQueues;
    has_turn_ = false;
  }
  return kNone;
}

}  // namespace trainyard
