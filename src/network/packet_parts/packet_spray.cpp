// SPDX-License-Identifier: Apache-2.0
#include "network/packet_parts/packet_spray.h"

#include <algorithm>
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

void PacketSpray::retire(std::uint32_t first, Picoseconds time) {
  for (SprayPath& path : paths_) {
    if (path.first == first) {
      path.until = std::min(path.until, time);
    }
  }
  CHECK(std::ranges::any_of(paths_, [](const SprayPath& path) { return path.until == kNeverTime; }),
        "no path of a connection is left");
}

std::uint32_t PacketSpray::next_path(std::int64_t payload, Picoseconds now) {
  while (true) {
    SprayPath& path = paths_[turn_];
    turn_ = turn_ + 1 == paths_.size() ? 0 : turn_ + 1;
    if (now < path.until) {
      path.bytes += payload;
      return path.first;
    }
  }
}

std::uint32_t SprayedArrivals::arrive(std::uint32_t sequence, bool ends_message) {
  const std::uint32_t distance = sequence - expected_;  // Numbers wrap.
  if (distance >= came_.size()) {
    grow(distance);
  }
  const std::size_t mask = came_.size() - 1;
  CHECK(came_[sequence & mask] == Came::No, "a sprayed packet came twice");
  came_[sequence & mask] = ends_message ? Came::EndsMessage : Came::Yes;
  std::uint32_t whole = 0;
  while (came_[expected_ & mask] != Came::No) {
    whole += came_[expected_ & mask] == Came::EndsMessage ? 1 : 0;
    came_[expected_ & mask] = Came::No;
    ++expected_;
  }
  return whole;
}

void SprayedArrivals::grow(std::uint32_t distance) {
  constexpr std::uint32_t kMaxOutOfOrder = std::uint32_t{1} << 24;
  CHECK(distance < kMaxOutOfOrder, "a sprayed packet overtook millions of others");
  std::size_t size = came_.size();
  while (size <= distance) {
    size *= 2;
  }
  std::vector<Came> larger(size);
  for (std::uint32_t i = 0; i < came_.size(); ++i) {
    const std::uint32_t sequence = expected_ + i;
    larger[sequence & (size - 1)] = came_[sequence & (came_.size() - 1)];
  }
  came_ = std::move(larger);
}

}  // namespace trainyard
