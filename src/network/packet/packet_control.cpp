// SPDX-License-Identifier: Apache-2.0
#include "network/packet/packet_control.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "network/packet/packet_transport.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {

PacketControl::PacketControl(const ControlProfile& profile, std::int64_t full_wire)
    : profile_(profile), traits_(profile.traits()), full_wire_(full_wire) {}

const ControlSettings& PacketControl::settings_of(Bandwidth line, Picoseconds base_rtt) {
  return settings_
      .try_emplace({line.bits_per_second(), base_rtt},
                   profile_.settings(
                       {.line = line, .base_rtt = SimTime(base_rtt), .packet = Bytes(full_wire_)}))
      .first->second;
}

void PacketControl::add(Bandwidth line, Picoseconds base_rtt, std::uint32_t position,
                        std::span<const Hop> hops) {
  if (traits_.shares_rtt && base_rtt > longest_rtt_) {
    longest_rtt_ = base_rtt;
    for (Sender& sender : senders_) {
      if (sender.highest == 0) {
        sender.settings = &settings_of(sender.settings->line, longest_rtt_);
        sender.control = SenderControl(*sender.settings);
      }
    }
  }
  const ControlSettings& settings = settings_of(line, traits_.shares_rtt ? longest_rtt_ : base_rtt);
  senders_.push_back({.settings = &settings,
                      .control = SenderControl(settings),
                      .hops = static_cast<std::uint16_t>(hops.size())});
  add_way(static_cast<std::uint32_t>(senders_.size() - 1), position, hops);
}

void PacketControl::add_way(std::uint32_t connection, std::uint32_t position,
                            std::span<const Hop> hops) {
  if (traits_.telemetry == IntFormat::None) {
    return;
  }
  if (hops.size() > kMaxIntHops) {
    throw ConfigError(
        fmt::format("congestion control {}: expected paths of at most {} switches, found one of {}",
                    profile_.name, kMaxIntHops, hops.size()));
  }
  senders_[connection].ways.push_back({.position = position,
                                       .first_hop = static_cast<std::uint32_t>(hops_.size()),
                                       .hops = static_cast<std::uint32_t>(hops.size())});
  for (const Hop& hop : hops) {
    hops_.push_back({.hop = hop, .stamps = {}});
  }
}

std::uint64_t PacketControl::rate(std::uint32_t connection, Picoseconds now) {
  return static_cast<std::uint64_t>(
      senders_[connection].control.rate(SimTime(now)).bits_per_second());
}

bool PacketControl::fits(std::uint32_t connection, std::uint32_t number, std::int64_t wire,
                         Picoseconds now) {
  Sender& sender = senders_[connection];
  const bool is_again = static_cast<std::int32_t>(number - sender.highest) < 0;
  if (!is_again && !sender.control.has_credit()) {
    return false;
  }
  const std::int64_t under_way = in_flight(connection);
  if (under_way == 0 || (is_again && is_under_way(sender, number))) {
    return true;
  }
  static_cast<void>(
      sender.control.rate(SimTime(now)));  // A window that follows a rate follows time.
  return under_way + wire <= sender.control.window().count();
}

// Twice as many packets may be under way. Those that are keep what is known of them.
void PacketControl::grow(Sender& sender) {
  constexpr std::size_t kMin = 8;
  const std::size_t size = std::max(kMin, 2 * sender.flight.size());
  CHECK(size <= (std::size_t{1} << 31), "too many packets of a connection under way");
  std::vector<Sent> flight(size);
  for (std::uint32_t sequence = sender.oldest; sequence != sender.next; ++sequence) {
    flight[sequence & (size - 1)] = record_of(sender, sequence);
  }
  sender.flight = std::move(flight);
}

void PacketControl::on_sent(std::uint32_t connection, const Departure& departure) {
  Sender& sender = senders_[connection];
  const bool is_again = static_cast<std::int32_t>(departure.number - sender.highest) < 0;
  if (!is_again) {
    sender.highest = departure.number + 1;
  }
  const SimTime now(departure.time);
  sender.last = {.start = departure.time, .wire = departure.wire};
  if (traits_.needs_acks()) {
    if (departure.number == sender.next) {
      if (sender.next - sender.oldest == sender.flight.size()) {
        grow(sender);
      }
      ++sender.next;
    }
    DCHECK(departure.number - sender.oldest < sender.next - sender.oldest,
           "a packet is sent that nobody waits for");
    Sent& record = record_of(sender, departure.number);
    const bool was_under_way = is_again && record.is_under_way;
    record = {.time = departure.time,
              .position = departure.position,
              .wire = static_cast<std::uint16_t>(departure.wire),
              .is_under_way = true,
              .is_again = is_again};
    sender.sent += was_under_way ? 0U : static_cast<std::uint64_t>(departure.wire);
  }
  static_cast<void>(sender.control.rate(now));  // Settles first what has expired.
  if (!is_again || !traits_.is_receiver_driven) {
    sender.control.on_sent(now, Bytes(departure.wire));
  }
}

PacketControl::Way& PacketControl::way_at(Sender& sender, std::uint32_t position) {
  auto after =
      std::upper_bound(sender.ways.begin(), sender.ways.end(), position,
                       [](std::uint32_t wanted, const Way& way) { return wanted < way.position; });
  CHECK(after != sender.ways.begin(), "a packet on no path of its connection");
  return *(after - 1);
}

void PacketControl::stamp(std::uint32_t connection, std::uint32_t sequence, std::uint32_t position,
                          const Stamp& stamp) {
  const Way& way = way_at(senders_[connection], position);
  const std::uint32_t first = hops_[way.first_hop].hop.position;
  // Ports of the fabric follow each other on a path, nearly always.
  std::uint32_t hop = std::min<std::uint32_t>(position - first, way.hops - 1U);
  while (hops_[way.first_hop + hop].hop.position != position) {
    --hop;
  }
  hops_[way.first_hop + hop].stamps.push({.sequence = sequence, .stamp = stamp});
}

PacketControl::IntPath PacketControl::path_of(const Way& way, std::uint32_t sequence) {
  IntPath path;
  for (std::uint32_t i = 0; i < way.hops; ++i) {
    Trail& trail = hops_[way.first_hop + i];
    Stamped written = trail.stamps.pop();
    // Skips stamps of packets that were lost, or sent again.
    while (written.sequence != sequence) {
      written = trail.stamps.pop();
    }
    const Stamp& stamp = written.stamp;
    const IntHop hop{.rate = Bandwidth(static_cast<std::int64_t>(trail.hop.bits_per_second)),
                     .time = SimTime(stamp.time),
                     .sent_bytes = stamp.sent_bytes,
                     .queue = Bytes(stamp.queue),
                     .port = trail.hop.link};
    path.at(i) = traits_.telemetry == IntFormat::Wire ? rounded_to_wire(hop) : hop;
  }
  return path;
}

std::int64_t PacketControl::settle(Sender& sender, std::uint32_t number) {
  Sent& record = record_of(sender, number);
  const bool was_under_way = std::exchange(record.is_under_way, false);
  record.is_missing = false;
  return was_under_way ? record.wire : 0;
}

bool PacketControl::waits_for(const Sent& record) {
  return record.is_under_way || record.is_missing;
}

void PacketControl::on_ack(std::uint32_t connection, std::uint32_t next, bool is_marked,
                           Picoseconds now) {
  const bool is_spread = senders_[connection].is_spread;
  on_ack(connection, {.next = is_spread ? senders_[connection].oldest : next,
                      .number = next - 1,
                      .is_marked = is_marked,
                      .time = now});
}

void PacketControl::on_ack(std::uint32_t connection, const Receipt& receipt) {
  if (!traits_.needs_acks()) {
    return;
  }
  Sender& sender = senders_[connection];
  const bool is_known = is_under_way(sender, receipt.number);
  const Sent answered = is_known ? record_of(sender, receipt.number) : Sent{};
  std::int64_t size = is_known ? settle(sender, receipt.number) : 0;
  for (const Psn other : receipt.others) {
    const auto number = static_cast<std::uint32_t>(other);
    size += is_under_way(sender, number) ? settle(sender, number) : 0;
  }
  while (sender.oldest != sender.next &&
         (static_cast<std::int32_t>(receipt.next - sender.oldest) > 0 ||
          !waits_for(record_of(sender, sender.oldest)))) {
    size += settle(sender, sender.oldest++);
  }
  if (static_cast<std::int32_t>(receipt.next - sender.oldest) > 0 &&
      static_cast<std::int32_t>(sender.highest - receipt.next) >= 0) {
    sender.oldest = receipt.next;  // An ACK from before going back: these stay sent.
    sender.next = receipt.next;
  }
  sender.acked += static_cast<std::uint64_t>(size);
  const bool tells_times = is_known && !answered.is_again;
  sender.control.on_any_ack();
  if (size == 0 || (!tells_times && traits_.needs_ack_times)) {
    return;
  }
  IntPath path;
  const bool has_int = traits_.telemetry != IntFormat::None;
  Way* const way = has_int ? &way_at(sender, answered.position) : nullptr;
  if (way != nullptr) {
    path = path_of(*way, receipt.number);
  }
  sender.control.on_ack(
      {.now = SimTime(receipt.time),
       .rtt = SimTime(receipt.time - answered.time),
       .acked = sender.acked,
       .next = sender.sent,
       .size = Bytes(size),
       .is_marked = receipt.is_marked,
       .tells_rtt = tells_times,
       .hops = sender.hops,
       .path = way != nullptr ? std::span(path).first(way->hops) : std::span<const IntHop>(),
       .memory = way != nullptr ? &way->memory : nullptr});
}

void PacketControl::lose(std::uint32_t connection, std::uint32_t number) {
  Sender& sender = senders_[connection];
  if (is_under_way(sender, number)) {
    sender.sent -= static_cast<std::uint64_t>(settle(sender, number));
    record_of(sender, number).is_missing = true;
  }
}

void PacketControl::go_back(std::uint32_t connection, std::uint32_t number) {
  Sender& sender = senders_[connection];
  while (static_cast<std::int32_t>(sender.next - number) > 0 && sender.next != sender.oldest) {
    sender.sent -= static_cast<std::uint64_t>(settle(sender, --sender.next));
  }
}

// From here on: what the ends of the engine's connections do with it.

// Ports of the fabric on a path.
std::vector<PacketControl::Hop> PacketSenders::hops_of(const PacketPath& path) const {
  std::vector<PacketControl::Hop> hops;
  for (std::uint32_t position = path.first; position < path.first + path.hops; ++position) {
    const Port& port = fabric_.ports()[fabric_.positions()[position]];
    if (fabric_.is_of_fabric(fabric_.topology().link(LinkId(port.link)))) {
      hops.push_back(
          {.bits_per_second = port.bits_per_second, .link = port.link, .position = position});
    }
  }
  return hops;
}

Picoseconds PacketSenders::add_controlled(const PacketPath& path, std::uint64_t rate) {
  // One packet more than the round trip: windows take whole packets, and must be enough for the
  // rate. The paper of HPCC too takes T slightly longer than the longest round trip of the network.
  const PacketSizes& sizes = fabric_.sizes();
  const Bandwidth line(static_cast<std::int64_t>(rate));
  const Picoseconds rtt = fabric_.idle_time(path.first, path.hops, sizes.full) +
                          fabric_.idle_time(path.reverse, path.hops, sizes.ack) +
                          transfer_time(Bytes(sizes.full), line).picoseconds();
  control_->add(line, rtt, path.first, hops_of(path));
  return control_->traits().is_receiver_driven ? add_credits(path, rtt) : kNeverTime;
}

// Bytes on the line of the packet that the connection would send next. There must be one.
bool PacketSenders::fits(std::uint32_t id, Picoseconds time) {
  const SendingEnd& end = ends_[id];
  if (reliable_.empty()) {
    return control_->fits(id, end.sequence, next_wire(end), time);
  }
  const ReliableConnection::Piece piece = reliable_[id].next();
  if (!queued_.empty() && !fits_in_queue(id, piece.is_again, time)) {
    return false;
  }
  return control_->fits(id, static_cast<std::uint32_t>(piece.number),
                        fabric_.wire_of(piece.payload, piece.begins_message), time);
}

// A socket always has room for two packets, and for all before it has measured a round trip.
bool PacketSenders::fits_in_queue(std::uint32_t id, bool is_again, Picoseconds time) {
  const std::optional<SimTime> round_trip = reliable_[id].smoothed_rtt();
  if (queued_[id] < 2 || !round_trip) {
    return true;
  }
  const double share = static_cast<double>(mtu_) / static_cast<double>(fabric_.sizes().full);
  const std::uint64_t rate = control_->rate(id, time);
  const double pace =
      share * (rate < ends_[id].rate
                   ? static_cast<double>(rate) / 8.0
                   : kPacingRatio * static_cast<double>(control_->control(id).window().count()) /
                         round_trip->seconds());
  const double memory = static_cast<double>(mtu_) + kMemoryAround;
  return static_cast<double>(queued_[id]) * memory <= small_queue(pace, memory, is_again);
}

bool PacketSenders::has_room(std::uint32_t number, Picoseconds start) {
  PacketSource& source = sources_[number];
  while (source.earliest() <= start) {
    const std::uint32_t id = source.first(start);
    const bool has_nothing = !reliable_.empty() && !reliable_[id].can_send();
    if (has_nothing || fits(id, start)) {
      return true;  // The caller that takes the turn looks once more whether there is anything.
    }
    // It leaves the line until there is room for its next packet.
    static_cast<void>(source.take(start));
    if (reliable_.empty()) {
      ends_[id].is_blocked = true;
    } else {
      ends_[id].is_in_line = false;
    }
  }
  return false;
}

// A packet began at `start`.
void PacketSenders::pace_controlled(const Port& port, const Packet& packet, Picoseconds start) {
  const std::uint32_t id = packet.connection;
  SendingEnd& end = ends_[id];
  control_->on_sent(
      id,
      {.number = packet.sequence, .wire = packet.wire, .position = packet.position, .time = start});
  const std::uint64_t rate = std::min(end.rate, control_->rate(id, start));
  if (rate < port.bits_per_second) {
    end.next_start = start + time_at(rate, packet.wire);
  }
}

// Sets the time at which the next packet may begin, by the window of now, where the window is below
// one packet, or was. A packet in line keeps the time that it was told, unless the window is one
// packet again. A message that is only sent later is not in line yet: whether it is known must not
// matter.
void PacketSenders::repace(std::uint32_t id, Picoseconds time) {
  SendingEnd& end = ends_[id];
  const bool pauses = control_->control(id).pauses();
  if (!pauses && !end.was_pausing) {
    return;
  }
  end.was_pausing = pauses;
  const bool waits =
      reliable_.empty() ? end.sending != kNoIndex && !end.is_blocked : end.is_in_line;
  const Picoseconds sent = waits && reliable_.empty() ? messages_[end.sending].time : 0;
  if (pauses && waits && sent <= time) {
    return;
  }
  const PacketControl::Last& last = control_->last(id);
  const std::uint64_t rate = std::min(end.rate, control_->rate(id, time));
  end.next_start = last.start + time_at(rate, last.wire);
  if (waits) {
    sources_[end.source].move(id, time, std::max({time, sent, end.next_start}));
  }
}

// Something has come to the source: if the connection was parked, it may go on.
void PacketSenders::resume(std::uint32_t id, Picoseconds time) {
  SendingEnd& end = ends_[id];
  if (control_) {
    repace(id, time);
  }
  if (!reliable_.empty()) {
    const ReliableConnection& both = reliable_[id];
    if (both.can_send() && !end.is_in_line && (!control_ || fits(id, time))) {
      end.is_in_line = true;
      sources_[end.source].wait(id, std::max(time, end.next_start), both.order());
    }
    return;
  }
  if (!end.is_blocked || !fits(id, time)) {
    return;
  }
  end.is_blocked = false;
  const PacketMessage& message = messages_[end.sending];
  sources_[end.source].wait(id, std::max({time, message.time, end.next_start}), message.order);
}

}  // namespace trainyard
