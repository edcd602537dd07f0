// SPDX-License-Identifier: Apache-2.0
#include "network/packet/packet_samples.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "network/packet/packet_engine.h"
#include "sim/config_error.h"

namespace trainyard {

void PacketSampler::take_at(const PacketEngine& engine, Picoseconds border) {
  take(engine, border);
  due_ = (border / interval_ + 1) * interval_;
}

void PacketSampler::take_until(const PacketEngine& engine, Picoseconds border) {
  while (is_due(border)) {
    if (!take(engine, due_)) {  // Then there will be nothing to see until something happens.
      before_ = border / interval_ * interval_;
    }
    due_ = before_ + interval_;
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
  const std::vector<Port>& ports = engine.fabric().ports();
  was_seen_.resize(ports.size());
  for (std::size_t index = 0; index < ports.size(); ++index) {
    const Port& port = ports[index];
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
  sent_.resize(engine.senders().count());
  for (std::uint32_t number = 0; number < sent_.size(); ++number) {
    const std::int64_t sent = engine.senders().payload_sent(number);
    const std::int64_t bytes = sent - sent_[number];
    sent_[number] = sent;
    if (bytes == 0 && !engine.targets().is_busy(number)) {
      continue;
    }
    const double bits = 8e12 * static_cast<double>(bytes) / static_cast<double>(time - before_);
    const auto [source, target] = engine.ends_of(number);
    samples_.rates.push_back({.time = SimTime(time),
                              .connection = ConnectionId(number),
                              .source = source,
                              .target = target,
                              .limit = Bandwidth(std::llround(engine.senders().rate(number, time))),
                              .sent = Bandwidth(std::llround(bits)),
                              .window_packets = engine.senders().window_packets(number),
                              .smoothed_rtt = engine.senders().smoothed_rtt(number)});
    is_seen = true;
  }
  before_ = time;
  if (samples_.queues.size() + samples_.rates.size() > kMaxSamples) {
    throw ConfigError(fmt::format(
        "packet engine: expected an interval that makes at most {} samples of queues and rates, "
        "found {}, which makes more in the first {}",
        kMaxSamples, to_string(SimTime(interval_)), to_string(SimTime(time))));
  }
  return is_seen;
}

std::optional<double> PacketSenders::window_packets(std::uint32_t id) const {
  const Bytes window = control_ ? control_->control(id).window() : kUnlimitedWindow;
  if (window >= kUnlimitedWindow) {
    return std::nullopt;
  }
  return static_cast<double>(window.count()) / static_cast<double>(fabric_.sizes().full);
}

std::optional<SimTime> PacketSenders::smoothed_rtt(std::uint32_t id) const {
  return reliable_.empty() ? std::nullopt : reliable_[id].smoothed_rtt();
}

std::optional<PacketSamples> PacketEngine::samples() const {
  return sampler_.is_on() ? std::optional(sampler_.samples(*this, begin_time_)) : std::nullopt;
}

PacketEngine::Counts PacketEngine::counts() const {
  Counts counts;
  for (const auto& worker : workers_) {
    counts += worker->notes().counts;
  }
  if (phases_) {
    counts += phases_->counts();
  }
  counts.windows = windows_;
  for (const Port& port : fabric_.ports()) {
    counts.packet_hops += port.counters.packets;
  }
  return counts;
}

PacketStats PacketEngine::stats() const {
  const Counts counts = this->counts();
  const PacketLosses::Tally lost = fabric_.losses().tally();
  PacketStats stats;
  stats.hops = counts.packet_hops;
  stats.skipped_hops = counts.skipped_hops;
  stats.skip_error = counts.skip_error;
  stats.cnps = counts.cnps;
  stats.acks = counts.acks;
  stats.reordered = counts.reordered;
  stats.failures = failures_.size();
  stats.bit_errors = lost.bit_errors;
  stats.link_down = lost.link_down;
  stats.drops = lost.bit_errors + lost.link_down;
  for (const ReliableConnection& ends : reliable_) {
    stats.retransmitted += ends.resent();
    stats.timeouts += ends.timeouts();
  }
  for (const Port& port : fabric_.ports()) {
    const PortTally& counters = port.counters;
    stats.marks += counters.marks;
    stats.pauses += counters.pauses_sent;
    stats.paused_time += SimTime(paused_time(port));
    stats.drops += counters.drops;
    stats.storms += storms(port);
    stats.storm_drops += counters.storm_drops;
    stats.max_queued = std::max(stats.max_queued, Bytes(counters.max_queued));
  }
  return stats;
}

ConnectionCounters PacketEngine::counters(std::uint32_t connection) const {
  const bool is_reliable = !reliable_.empty();
  return {.packets = senders_.end(connection).sequence,
          .retransmitted = is_reliable ? reliable_[connection].resent() : 0,
          .timeouts = is_reliable ? reliable_[connection].timeouts() : 0,
          .congestion_notifications = targets_.cnps(connection)};
}

const Port* PacketEngine::port(LinkId link) const {
  const std::uint32_t index = fabric_.port_index(link);
  return index == kNoIndex ? nullptr : &fabric_.ports()[index];
}

Picoseconds PacketEngine::paused_time(const Port& port) const {
  return port.counters.paused_time +
         ((port.stops & Port::kPaused) != 0 ? begin_time_ - port.paused_since : 0);
}

Picoseconds PacketEngine::starved_time(const Port& port) const {
  if (port.credits == kNoIndex) {
    return 0;
  }
  const LinkCredits& credits = fabric_.credits()[port.credits];
  const bool is_starved = (port.stops & Port::kStarved) != 0 && begin_time_ > credits.starved_since;
  return credits.starved_time + (is_starved ? begin_time_ - credits.starved_since : 0);
}

std::optional<Bytes> PacketEngine::queue_percentile(const Port& port, int percent) const {
  if (watch_.queue_times.empty()) {
    return std::nullopt;
  }
  const QueueTimes& times = watch_.queue_times[fabric_.port_index(LinkId(port.link))];
  return Bytes(std::min(times.percentile(percent, begin_time_), port.counters.max_queued));
}

std::pair<NodeId, NodeId> PacketEngine::ends_of(std::uint32_t id) const {
  const auto link = [&](std::uint32_t hop) -> const Link& {
    const std::uint32_t port = fabric_.positions()[senders_.end(id).path + hop];
    return fabric_.topology().link(LinkId(fabric_.ports()[port].link));
  };
  return {link(0).source, link(senders_.end(id).hops - 1U).target};
}

std::vector<LinkUse> PacketEngine::payload_by_link() const {
  std::vector<std::int64_t> sent(fabric_.ports().size());
  for (std::uint32_t id = 0; id < senders_.count(); ++id) {
    if (targets_.has_ways(id)) {
      targets_.add_payload(id, senders_.end(id).sent_bytes, sent);
    } else {
      senders_.add_payload(id, sent);
    }
  }
  std::vector<Bytes> bytes(fabric_.topology().link_count());
  for (std::size_t port = 0; port < sent.size(); ++port) {
    bytes[fabric_.ports()[port].link] = Bytes(sent[port]);
  }
  for (const BeforeQueue& before : before_queues_) {
    bytes[before.link.value()] += Bytes(senders_.end(before.connection).sent_bytes);
  }
  return use_of(bytes);
}

}  // namespace trainyard
