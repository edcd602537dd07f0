// SPDX-License-Identifier: Apache-2.0
#include "network/engines/message_times.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "sim/check.h"

namespace trainyard {
namespace {

constexpr int kBits = 10;
constexpr std::uint64_t kOfPower = 1U << kBits;  // Buckets from one power of two to the next.

// Times below twice as many picoseconds have a bucket each.
std::size_t bucket_of(SimTime time) {
  const auto length = static_cast<std::uint64_t>(time.picoseconds());
  const int shift = std::max(0, static_cast<int>(std::bit_width(length)) - kBits - 1);
  return kOfPower * static_cast<std::uint64_t>(shift) + (length >> shift);
}

// The longest time in it.
SimTime end_of(std::size_t bucket) {
  const std::uint64_t shift = bucket < 2 * kOfPower ? 0 : bucket / kOfPower - 1;
  const std::uint64_t head = bucket - kOfPower * shift;
  return SimTime(static_cast<std::int64_t>(((head + 1) << shift) - 1));
}

}  // namespace

void TimeCounts::add(SimTime time) {
  CHECK(time >= SimTime(), "a message was complete before it was sent");
  const std::size_t bucket = bucket_of(time);
  if (bucket >= buckets_.size()) {
    buckets_.resize(bucket + 1);
  }
  ++buckets_[bucket];
  ++count_;
  max_ = std::max(max_, time);
}

SimTime TimeCounts::percentile(std::uint64_t percent) const {
  const std::uint64_t rank = count_ / 100 * percent + (count_ % 100 * percent + 99) / 100;
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= rank) {
      return std::min(end_of(bucket), max_);
    }
  }
  CHECK(false, "buckets hold fewer messages than were counted");
}

MessageTimes TimeCounts::times() const {
  if (count_ == 0) {
    return {};
  }
  return {.messages = count_, .p50 = percentile(50), .p99 = percentile(99), .max = max_};
}

TimedNetwork::TimedNetwork(Simulator& simulator, std::unique_ptr<Network> network)
    : EventHandler(simulator), simulator_(simulator), network_(std::move(network)) {}

void TimedNetwork::send(ConnectionId connection, Bytes size, EventHandler& done,
                        std::uint64_t token) {
  const Message message{.sent = simulator_.now(), .done = &done, .token = token};
  std::uint64_t slot = messages_.size();
  if (free_.empty()) {
    messages_.push_back(message);
  } else {
    slot = free_.back();
    free_.pop_back();
    messages_[slot] = message;
  }
  network_->send(connection, size, *this, slot);
}

// Whoever sent it is woken in the same event, so that events of one instant keep their order.
void TimedNetwork::on_event(std::uint64_t slot) {
  const Message message = messages_[slot];
  free_.push_back(slot);
  counts_.add(simulator_.now() - message.sent);
  message.done->on_event(message.token);
}

}  // namespace trainyard
