// SPDX-License-Identifier: Apache-2.0
#include "network/packet_samples.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "network/packet_engine.h"

namespace trainyard {

void PacketSampler::take_at(const PacketEngine& engine, Picoseconds border) {
  take(engine, border);
  due_ = (border / interval_ + 1) * interval_;
}

void PacketSampler::take_until(const PacketEngine& engine, Picoseconds border) {
  while (is_due(border)) {
    // Where there is nothing to see there will be nothing.
    due_ = take(engine, due_) ? due_ + interval_ : (border / interval_ + 1) * interval_;
  }
}

PacketSamples PacketSampler::samples(const PacketEngine& engine, Picoseconds end) const {
  PacketSampler whole = *this;
  if (end > before_) {
    whole.take(engine, end);
  }
  return std::move(whole.samples_);
}

bool PacketSampler::take(const PacketEngine& engine, Picoseconds time) {
  bool is_seen = false;
  was_seen_.resize(engine.ports().size());
  for (std::size_t index = 0; index < engine.ports().size(); ++index) {
    const Port& port = engine.ports()[index];
    const bool has_queue = port.queued_bytes > 0 || (port.stops & Port::kPaused) != 0;
    if (has_queue || was_seen_[index]) {
      samples_.queues.push_back({.time = SimTime(time),
                                 .link = LinkId(port.link),
                                 .bytes = Bytes(port.queued_bytes),
                                 .is_paused = (port.stops & Port::kPaused) != 0});
      is_seen = true;
    }
    was_seen_[index] = has_queue;
  }
  sent_.resize(engine.connections());
  for (std::uint32_t number = 0; number < sent_.size(); ++number) {
    const std::int64_t sent = engine.payload_sent(number);
    const std::int64_t bytes = sent - sent_[number];
    sent_[number] = sent;
    if (bytes == 0 && !engine.is_busy(number)) {
      continue;
    }
    const double bits = 8e12 * static_cast<double>(bytes) / static_cast<double>(time - before_);
    const auto [source, target] = engine.ends_of(number);
    samples_.rates.push_back(
        {.time = SimTime(time),
         .connection = ConnectionId(number),
         .source = source,
         .target = target,
         .limit = Bandwidth(std::llround(engine.rate_at(number, SimTime(time)))),
         .sent = Bandwidth(std::llround(bits))});
    is_seen = true;
  }
  before_ = time;
  return is_seen;
}

std::optional<PacketSamples> PacketEngine::samples() const {
  return sampler_.is_on() ? std::optional(sampler_.samples(*this, begin_time_)) : std::nullopt;
}

std::int64_t PacketEngine::payload_sent(std::uint32_t number) const {
  const Connection& connection = connections_[number];
  const bool is_sending = connection.sending != kNoIndex;
  return connection.sent_bytes +
         (is_sending ? messages_[connection.sending].size - connection.unsent : 0);
}

double PacketEngine::rate_at(std::uint32_t number, SimTime time) const {
  const Connection& connection = connections_[number];
  if (!connection.was_cut) {
    return static_cast<double>(connection.rate);
  }
  DcqcnReaction reaction = reactions_[number];  // Who looks must not change anything.
  reaction.advance(time);
  return std::min(reaction.current(), static_cast<double>(connection.rate));
}

}  // namespace trainyard
