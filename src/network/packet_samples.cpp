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
  if (control_) {
    SenderControl control = control_->control(number);
    return std::min(static_cast<double>(control.rate(time).bits_per_second()),
                    static_cast<double>(connection.rate));
  }
  if (!connection.was_cut) {
    return static_cast<double>(connection.rate);
  }
  DcqcnReaction reaction = reactions_[number];  // Who looks must not change anything.
  reaction.advance(time);
  return std::min(reaction.current(), static_cast<double>(connection.rate));
}

PacketEngine::Counts PacketEngine::counts() const {
  Counts counts = counts_;
  for (const Port& port : ports_) {
    counts.packet_hops += port.counters.packets;
  }
  return counts;
}

PacketStats PacketEngine::stats() const {
  PacketStats stats;
  stats.cnps = counts_.cnps;
  stats.acks = counts_.acks;
  stats.reordered = counts_.reordered;
  stats.failures = failures_.size();
  stats.bit_errors = losses_.tally().bit_errors;
  stats.link_down = losses_.tally().link_down;
  stats.drops = stats.bit_errors + stats.link_down;
  for (const Reliable& reliable : reliable_) {
    stats.retransmitted += reliable.ends.resent();
    stats.timeouts += reliable.ends.timeouts();
  }
  for (const Port& port : ports_) {
    const PortTally& counters = port.counters;
    stats.hops += counters.packets;
    stats.marks += counters.marks;
    stats.pauses += counters.pauses_sent;
    stats.paused_time += SimTime(paused_time(port));
    stats.drops += counters.drops;
    stats.most_queued = std::max(stats.most_queued, Bytes(counters.most_queued));
  }
  return stats;
}

const Port* PacketEngine::port(LinkId link) const {
  const std::uint32_t index = port_index_[link.value()];
  return index == kNoIndex ? nullptr : &ports_[index];
}

Picoseconds PacketEngine::paused_time(const Port& port) const {
  return port.counters.paused_time +
         ((port.stops & Port::kPaused) != 0 ? begin_time_ - port.paused_since : 0);
}

std::optional<Bytes> PacketEngine::queue_percentile(const Port& port, int percent) const {
  if (!options_.queue_times) {
    return std::nullopt;
  }
  const QueueTimes& times = queue_times_[port_index_[port.link]];
  return Bytes(std::min(times.percentile(percent, begin_time_), port.counters.most_queued));
}

std::vector<std::pair<LinkId, std::int64_t>> PacketEngine::payload_by_link() const {
  std::vector<std::int64_t> bytes(ports_.size());
  for (const Connection& connection : connections_) {
    const auto add = [&](std::uint32_t path, std::int64_t sent) {
      for (std::uint32_t hop = 0; hop < connection.hops; ++hop) {
        bytes[positions_[path + hop]] += sent;
      }
    };
    if (connection.spray == kNoIndex) {
      add(connection.path, connection.sent_bytes);
      continue;
    }
    for (const PacketSpray::SprayPath& path : sprays_[connection.spray].paths()) {
      add(path.first, path.bytes);
    }
  }
  std::vector<std::pair<LinkId, std::int64_t>> result;
  for (std::uint32_t link = 0; link < port_index_.size(); ++link) {
    if (port_index_[link] != kNoIndex && bytes[port_index_[link]] > 0) {
      result.emplace_back(LinkId(link), bytes[port_index_[link]]);
    }
  }
  return result;
}

}  // namespace trainyard
