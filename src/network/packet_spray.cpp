// SPDX-License-Identifier: Apache-2.0
#include "network/packet_spray.h"

#include <utility>

#include "sim/check.h"
#include "sim/random.h"

namespace trainyard {

// Fisher-Yates from within.
void PacketSpray::add_path(std::uint32_t first, std::uint64_t draw) {
  paths_.push_back({.first = first});
  const std::uint64_t place = hash64(draw ^ paths_.size()) % paths_.size();
  std::swap(paths_[place], paths_.back());
}

std::uint32_t PacketSpray::next_path(std::int64_t payload, std::uint32_t sequence,
                                     bool ends_message) {
  if (ends_message) {
    ends_.push(sequence);
  }
  SprayPath& path = paths_[turn_];
  turn_ = turn_ + 1 == paths_.size() ? 0 : turn_ + 1;
  path.bytes += payload;
  return path.first;
}

std::uint32_t PacketSpray::arrive(std::uint32_t sequence) {
  const std::uint32_t distance = sequence - expected_;  // Numbers wrap.
  if (distance >= came_.size()) {
    grow(distance);
  }
  std::size_t mask = came_.size() - 1;
  CHECK(came_[sequence & mask] == 0, "a sprayed packet came twice");
  came_[sequence & mask] = 1;
  std::uint32_t whole = 0;
  while (came_[expected_ & mask] != 0) {
    came_[expected_ & mask] = 0;
    if (!ends_.empty() && ends_.front() == expected_) {
      (void)ends_.pop();
      ++whole;
    }
    ++expected_;
  }
  return whole;
}

void PacketSpray::grow(std::uint32_t distance) {
  constexpr std::uint32_t kMostOutOfOrder = std::uint32_t{1} << 24;
  CHECK(distance < kMostOutOfOrder, "a sprayed packet overtook millions of others");
  std::size_t size = came_.size();
  while (size <= distance) {
    size *= 2;
  }
  std::vector<std::uint8_t> larger(size);
  for (std::uint32_t i = 0; i < came_.size(); ++i) {
    const std::uint32_t sequence = expected_ + i;
    larger[sequence & (size - 1)] = came_[sequence & (came_.size() - 1)];
  }
  came_ = std::move(larger);
}

}  // namespace trainyard
