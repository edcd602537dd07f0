// SPDX-License-Identifier: Apache-2.0
#include "network/packet_control.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "network/packet_transport.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {

bool needs_acks(const ControlProfile& profile) {
  const DcqcnProfile* const dcqcn = profile.dcqcn();
  return dcqcn != nullptr ? dcqcn->has_window
                          : !std::holds_alternative<NoControlProfile>(profile.rules);
}

int packets_per_ack(const ControlProfile& profile, std::int64_t full_wire) {
  if (!needs_acks(profile)) {
    return 0;
  }
  const auto* const timely = std::get_if<TimelyProfile>(&profile.rules);
  return timely == nullptr
             ? 1
             : static_cast<int>((timely->segment.count() + full_wire - 1) / full_wire);
}

PacketControl::PacketControl(const ControlProfile& profile, std::int64_t full_wire)
    : profile_(profile),
      full_wire_(full_wire),
      needs_acks_(trainyard::needs_acks(profile)),
      wants_int_(profile.wants_int()) {
  if (const auto* const hpcc = std::get_if<HpccProfile>(&profile_.rules)) {
    has_wire_counters_ = hpcc->settings.wire_counters;
  }
}

void PacketControl::add(Bandwidth line, Picoseconds base_rtt, std::span<const Hop> hops) {
  if (wants_int_ && hops.size() > kMostIntHops) {
    throw ConfigError(
        fmt::format("congestion control {}: expected paths of at most {} switches, found one of {}",
                    profile_.name, kMostIntHops, hops.size()));
  }
  const auto entry = settings_.find({line.bits_per_second(), base_rtt});
  const ControlSettings& settings =
      entry != settings_.end()
          ? entry->second
          : settings_
                .try_emplace(
                    {line.bits_per_second(), base_rtt},
                    profile_.settings(
                        {.line = line, .base_rtt = SimTime(base_rtt), .packet = Bytes(full_wire_)}))
                .first->second;
  senders_.push_back({.settings = &settings,
                      .control = SenderControl(settings),
                      .first_hop = static_cast<std::uint32_t>(hops_.size()),
                      .hops = static_cast<std::uint16_t>(hops.size()),
                      .flight = {}});
  for (const Hop& hop : hops) {
    hops_.push_back({.hop = hop, .stamps = {}});
  }
}

std::uint64_t PacketControl::rate(std::uint32_t connection, Picoseconds now) {
  return static_cast<std::uint64_t>(
      senders_[connection].control.rate(SimTime(now)).bits_per_second());
}

bool PacketControl::fits(std::uint32_t connection, std::int64_t wire, Picoseconds now) {
  const std::int64_t under_way = in_flight(connection);
  if (under_way == 0) {
    return true;
  }
  SenderControl& control = senders_[connection].control;
  static_cast<void>(control.rate(SimTime(now)));  // A window that follows a rate follows time.
  return under_way + wire <= control.window().count();
}

// Twice as many packets may be under way. Those that are keep what is known of them.
void PacketControl::grow(Sender& sender) {
  constexpr std::size_t kLeast = 8;
  const std::size_t size = std::max(kLeast, 2 * sender.flight.size());
  CHECK(size <= (std::size_t{1} << 31), "too many packets of a connection under way");
  std::vector<Sent> flight(size);
  for (std::uint32_t sequence = sender.oldest; sequence != sender.next; ++sequence) {
    flight[sequence & (size - 1)] = sender.flight[sequence & (sender.flight.size() - 1)];
  }
  sender.flight = std::move(flight);
}

void PacketControl::on_sent(std::uint32_t connection, std::int64_t wire, Picoseconds now) {
  Sender& sender = senders_[connection];
  if (needs_acks_) {
    if (sender.next - sender.oldest == sender.flight.size()) {
      grow(sender);
    }
    sender.flight[sender.next & (sender.flight.size() - 1)] = {.time = now, .wire = wire};
    ++sender.next;
    sender.sent += static_cast<std::uint64_t>(wire);
  }
  static_cast<void>(sender.control.rate(SimTime(now)));  // What has expired comes before.
  sender.control.on_sent(SimTime(now), Bytes(wire));
}

void PacketControl::stamp(std::uint32_t connection, std::uint32_t sequence, std::uint32_t position,
                          const Stamp& stamp) {
  const Sender& sender = senders_[connection];
  const std::uint32_t first = hops_[sender.first_hop].hop.position;
  // Ports of the fabric follow each other on a path, nearly always.
  std::uint32_t hop = std::min<std::uint32_t>(position - first, sender.hops - 1U);
  while (hops_[sender.first_hop + hop].hop.position != position) {
    --hop;
  }
  hops_[sender.first_hop + hop].stamps.push({.sequence = sequence, .stamp = stamp});
}

PacketControl::IntPath PacketControl::path_of(const Sender& sender, std::uint32_t sequence) {
  IntPath path;
  for (std::uint32_t i = 0; i < sender.hops; ++i) {
    Trail& trail = hops_[sender.first_hop + i];
    Stamped written = trail.stamps.pop();
    while (written.sequence != sequence) {  // Of packets that were lost on the way.
      written = trail.stamps.pop();
    }
    const Stamp& stamp = written.stamp;
    const IntHop hop{.rate = Bandwidth(static_cast<std::int64_t>(trail.hop.bits_per_second)),
                     .time = SimTime(stamp.time),
                     .sent_bytes = stamp.sent_bytes,
                     .queue = Bytes(stamp.queue),
                     .port = trail.hop.link};
    path.at(i) = has_wire_counters_ ? rounded_to_wire(hop) : hop;
  }
  return path;
}

void PacketControl::on_ack(std::uint32_t connection, std::uint32_t next, bool is_marked,
                           Picoseconds now) {
  Sender& sender = senders_[connection];
  const std::uint32_t answered = next - sender.oldest;
  if (!needs_acks_ || answered == 0 || answered > sender.next - sender.oldest) {
    return;
  }
  const std::size_t mask = sender.flight.size() - 1;
  const Picoseconds sent_at = sender.flight[(next - 1) & mask].time;
  std::int64_t size = 0;
  for (; sender.oldest != next; ++sender.oldest) {
    size += sender.flight[sender.oldest & mask].wire;
  }
  sender.acked += static_cast<std::uint64_t>(size);
  IntPath path;
  if (wants_int_) {
    path = path_of(sender, next - 1);
  }
  sender.control.on_ack(
      {.now = SimTime(now),
       .rtt = SimTime(now - sent_at),
       .host_delay = {},
       .acked = sender.acked,
       .next = sender.sent,
       .size = Bytes(size),
       .is_marked = is_marked,
       .hops = sender.hops,
       .path = wants_int_ ? std::span(path).first(sender.hops) : std::span<const IntHop>()});
}

void PacketControl::on_cnp(std::uint32_t connection, Picoseconds now) {
  senders_[connection].control.on_cnp(SimTime(now));
}

// From here on: what the ends of the engine's connections do with it.

void PacketSenders::add_controlled(const PacketPath& path, std::uint64_t rate) {
  std::vector<PacketControl::Hop> hops;
  for (std::uint32_t position = path.first; position < path.first + path.hops; ++position) {
    const Port& port = fabric_.ports()[fabric_.positions()[position]];
    if (fabric_.is_of_fabric(fabric_.topology().link(LinkId(port.link)))) {
      hops.push_back(
          {.bits_per_second = port.bits_per_second, .link = port.link, .position = position});
    }
  }
  // One packet more than the round trip: windows take whole packets, and must be enough for the
  // rate. The paper of HPCC too takes T slightly longer than the round trip.
  const PacketSizes& sizes = fabric_.sizes();
  const Bandwidth line(static_cast<std::int64_t>(rate));
  const Picoseconds rtt = fabric_.idle_time(path.first, path.hops, sizes.full) +
                          fabric_.idle_time(path.reverse, path.hops, sizes.ack) +
                          transfer_time(Bytes(sizes.full), line).picoseconds();
  control_->add(line, rtt, hops);
}

bool PacketSenders::has_room(std::uint32_t number, Picoseconds start) {
  PacketSource& source = sources_[number];
  while (source.earliest() <= start) {
    const std::uint32_t id = source.first(start);
    if (control_->fits(id, next_wire(ends_[id]), start)) {
      return true;
    }
    static_cast<void>(source.take(start));
    control_->block(id);
  }
  return false;
}

// After a packet began at `start`. Whether its connection stays in line. A message that is only
// sent later is looked at when its turn comes: whether it is known yet must not matter.
bool PacketSenders::goes_on_controlled(const Port& port, const Packet& packet, Picoseconds start) {
  const std::uint32_t id = packet.connection;
  SendingEnd& end = ends_[id];
  control_->on_sent(id, packet.wire, start);
  const std::uint64_t rate = std::min(end.rate, control_->rate(id, start));
  if (rate < port.bits_per_second) {
    end.next_start = start + time_at(rate, packet.wire);
  }
  if (end.sending == kNoIndex) {
    return false;
  }
  if (messages_[end.sending].time <= start && !control_->fits(id, next_wire(end), start)) {
    control_->block(id);
    return false;
  }
  return true;
}

// An ACK or a CNP is back at its source.
void PacketSenders::on_controlled_notice(const Packet& packet, Picoseconds time) {
  const std::uint32_t id = packet.connection;
  if (packet.has(Packet::kCnp)) {
    control_->on_cnp(id, time);
  } else {
    control_->on_ack(id, packet.sequence, packet.has(Packet::kMarked), time);
  }
  const SendingEnd& end = ends_[id];
  if (!control_->is_blocked(id) || !control_->fits(id, next_wire(end), time)) {
    return;
  }
  control_->unblock(id);
  const PacketMessage& message = messages_[end.sending];
  sources_[end.source].wait(id, std::max({time, message.time, end.next_start}), message.order);
}

}  // namespace trainyard
