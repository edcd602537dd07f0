// SPDX-License-Identifier: Apache-2.0
#include "hw/switch/lane_arbiter.h"

#include <algorithm>
#include <bit>
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

int PriorityScheduler::pick(std::uint8_t ready) {
  const unsigned strict = ready & strict_;
  if (strict != 0) {
    return static_cast<int>(std::bit_width(strict)) - 1;
  }
  if (ready == 0) {
    return kNone;
  }
  const auto is_ready = [&](std::size_t i) { return (ready >> i & 1U) != 0; };
  while (!is_ready(current_) || surplus_[current_] <= 0) {
    // A lane that has nothing to send saves nothing.
    surplus_[current_] =
        is_ready(current_) ? surplus_[current_] : std::min<std::int64_t>(surplus_[current_], 0);
    current_ = (current_ + 1) % kQueues;
    surplus_[current_] += is_ready(current_) ? quanta_[current_] : 0;
  }
  return static_cast<int>(current_);
}

void PriorityScheduler::sent(int queue, std::int64_t bytes) {
  if ((strict_ >> queue & 1) == 0) {
    surplus_[static_cast<std::size_t>(queue)] -= bytes;
  }
}

}  // namespace trainyard
