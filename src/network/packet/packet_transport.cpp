// SPDX-License-Identifier: Apache-2.0
#include "network/packet/packet_transport.h"

#include <algorithm>

#include "sim/check.h"
#include "sim/random.h"

namespace trainyard {

PacketSenders::PacketSenders(PacketFabric& fabric, const PacketMessages& messages,
                             std::vector<ReliableConnection>& reliable, PacketGrants& grants)
    : fabric_(fabric),
      messages_(messages),
      reliable_(reliable),
      grants_(grants),
      mtu_(fabric.options().mtu.count()) {
  if (const auto& profile = fabric.options().profile) {
    control_.emplace(*profile, fabric.sizes().full);
  }
}

Picoseconds PacketSenders::add(const PacketPath& path, std::uint64_t rate) {
  const std::uint32_t index = fabric_.positions()[path.first];
  Port& port = fabric_.ports()[index];
  const PacketOptions& options = fabric_.options();
  Picoseconds min = kNeverTime;
  if (control_) {
    min = add_controlled(path, rate);
  } else if (options.control != CongestionControl::None) {
    const auto line = Bandwidth(static_cast<std::int64_t>(rate));
    DcqcnSettings settings = options.dcqcn.value_or(dcqcn_settings(options.control, line));
    settings.line = line;
    const auto entry = settings_.try_emplace(rate, settings).first;
    reactions_.push_back({.dcqcn = DcqcnReaction(entry->second)});
  }
  std::uint32_t& source = fabric_.source_of(port, static_cast<std::uint32_t>(ends_.size()));
  if (source == kNoIndex) {
    source = static_cast<std::uint32_t>(sources_.size());
    sources_.emplace_back();
    port.own_turn = false;  // Until then nobody reads it.
  }
  if (options.has_sockets()) {
    port.stops |= Port::kFills;
    queued_.push_back(0);
  }
  ends_.push_back({.rate = rate,
                   .path = path.first,
                   .port = index,
                   .source = source,
                   .hops = path.hops,
                   .is_paced = rate < port.bits_per_second});
  return options.sends_again() ? std::min(min, add_reliable(path, rate)) : min;
}

void PacketSenders::add_way(std::uint32_t id, const PacketPath& path) {
  if (control_) {
    control_->add_way(id, path.first, hops_of(path));
  }
}

std::uint32_t PacketSenders::add_alternative(const PacketPath& path, std::uint32_t id) {
  add_way(id, path);
  spread(id);
  if (!reliable_.empty()) {
    reliable_[id] =
        ReliableConnection(fabric_.options(), selective_for(path, ends_[id].rate, true));
  }
  spray_of_.resize(std::max(spray_of_.size(), id + std::size_t{1}), kNoIndex);
  std::uint32_t& spray = spray_of_[id];
  if (spray == kNoIndex) {
    spray = static_cast<std::uint32_t>(sprays_.size());
    sprays_.emplace_back(ends_[id].path);
  }
  sprays_[spray].add_path(path.first, hash64(fabric_.options().seed ^ hash64(id)));
  return spray;
}

void PacketSenders::retire(std::uint32_t id, Picoseconds time, std::span<const LinkId> links) {
  CHECK(!reliable_.empty() && spray_of(id) != kNoIndex,
        "paths are left out of sprayed connections that send again");
  PacketSpray& spray = sprays_[spray_of(id)];
  const auto is_path = [&](std::uint32_t first) {
    for (std::uint32_t hop = 0; hop < links.size(); ++hop) {
      if (fabric_.ports()[fabric_.positions()[first + hop]].link != links[hop].value()) {
        return false;
      }
    }
    return true;
  };
  for (const PacketSpray::SprayPath& path : spray.paths()) {
    if (is_path(path.first)) {
      spray.retire(path.first, time);
    }
  }
}

bool PacketSenders::post(std::uint32_t id, std::uint32_t slot, PacketNotes& notes) {
  SendingEnd& end = ends_[id];
  const PacketMessage& message = messages_[slot];
  end.last = slot;
  if (!grants_.empty()) {
    grants_.post(id, message.time, wire_of_message(message.size));
  }
  if (!grants_.empty() || !reliable_.empty()) {
    notes.alarms.push(
        {.time = message.time, .port = end.port, .connection = id, .kind = Alarm::Kind::Post});
  }
  if (!reliable_.empty()) {
    const bool ends_here = !fabric_.is_port_elsewhere(target_port(id));
    reliable_[id].add(message.size, message.time, message.order,
                      ends_here ? MessageEnds::Both : MessageEnds::Source);
    return false;
  }
  if (end.sending != kNoIndex) {
    return false;
  }
  end.sending = slot;
  end.unsent = message.size;
  sources_[end.source].wait(id, std::max(message.time, end.next_start), message.order);
  return true;
}

void PacketSenders::post_elsewhere(std::uint32_t id, std::uint32_t slot) {
  const PacketMessage& message = messages_[slot];
  ends_[id].last = slot;
  if (!reliable_.empty() && !fabric_.is_port_elsewhere(target_port(id))) {
    reliable_[id].add(message.size, message.time, message.order, MessageEnds::Target);
  }
}

std::optional<Packet> PacketSenders::take(std::uint32_t source, Picoseconds start,
                                          PacketNotes& notes) {
  const std::uint32_t connection = sources_[source].take(start);
  if (!reliable_.empty()) [[unlikely]] {
    return next_reliable(connection, start, notes);
  }
  return next_of(connection, notes);
}

// Bytes on the line of the next packet of the message that is being sent.
std::int64_t PacketSenders::next_wire(const SendingEnd& end) const {
  const std::int64_t payload = std::min(end.unsent, mtu_);
  const bool is_first = end.unsent == messages_[end.sending].size;
  return is_first || payload != mtu_ ? fabric_.wire_of(payload, is_first) : fabric_.sizes().full;
}

// The last packet of a message leaves.
void PacketSenders::leave(SendingEnd& end, std::int64_t size, PacketNotes& notes) const {
  ++notes.counts.messages;
  notes.counts.bytes += size;
  end.sent_bytes += size;
}

// Cuts the next packet off the message that `connection` is sending.
Packet PacketSenders::next_of(std::uint32_t id, PacketNotes& notes) {
  SendingEnd& end = ends_[id];
  const std::int64_t wire = next_wire(end);
  const std::int64_t payload = std::min(end.unsent, mtu_);
  end.unsent -= payload;
  const bool ends_message = end.unsent == 0;
  if (ends_message) {
    const PacketMessage& message = messages_[end.sending];
    leave(end, message.size, notes);
    end.sending = message.next;
    if (end.sending != kNoIndex) {
      end.unsent = messages_[end.sending].size;
    }
  }
  std::uint32_t position = end.path;
  if (const std::uint32_t spray = spray_of(id); spray != kNoIndex) [[unlikely]] {
    position = sprays_[spray].next_path(payload, 0);  // None is retired without retransmission.
  }
  return {.connection = id,
          .position = position,
          .sequence = end.sequence++,
          .wire = static_cast<std::uint16_t>(wire),
          .left = end.hops,
          .flags = ends_message ? Packet::kEndsMessage : std::uint8_t{0}};
}

// Sets when the next packet may begin, after one began at `start`.
void PacketSenders::pace(SendingEnd& end, const Packet& packet, Picoseconds start) {
  if (end.is_paced || end.was_cut) {
    std::uint64_t rate = end.rate;
    if (end.was_cut) {
      DcqcnReaction& reaction = reactions_[packet.connection].dcqcn;
      reaction.advance(SimTime(start));
      reaction.on_sent(SimTime(start), Bytes(packet.wire));
      rate = std::min(rate, static_cast<std::uint64_t>(reaction.rate().bits_per_second()));
    }
    end.next_start = start + time_at(rate, packet.wire);
  }
}

void PacketSenders::go_on(const Port& port, const Packet& packet, Picoseconds start,
                          PacketNotes& notes) {
  SendingEnd& end = ends_[packet.connection];
  if (control_) [[unlikely]] {
    pace_controlled(port, packet, start);
  } else {
    pace(end, packet, start);
  }
  if (!reliable_.empty()) [[unlikely]] {
    go_on_reliably(packet, start, notes);
    return;
  }
  if (end.sending == kNoIndex) {
    return;
  }
  // A message that is only sent later is looked at when its turn comes: whether it is known yet
  // must not matter.
  const PacketMessage& message = messages_[end.sending];
  if (control_ && message.time <= start && !fits(packet.connection, start)) {
    end.is_blocked = true;
    return;
  }
  const Picoseconds time = std::max(message.time, end.next_start);
  if (time <= start) {
    sources_[end.source].make_ready(packet.connection);
  } else {
    sources_[end.source].wait(packet.connection, time, message.order);
  }
}

bool PacketSenders::hears_acks() const {
  return fabric_.options().sends_again() || (control_ && control_->traits().needs_acks());
}

std::optional<Packet> PacketSenders::on_notice(const Packet& packet, Picoseconds time,
                                               PacketNotes& notes) {
  const std::uint32_t id = packet.connection;
  if (packet.has(Packet::kCnp)) {
    if (!grants_.empty()) {
      on_grant(packet, time);
      set_ask_timer(id, notes);  // After tries in vain the time for the next one was longer.
    } else if (control_) {
      control_->control(id).on_cnp(SimTime(time));
      resume(id, time);
    } else {
      ends_[id].was_cut = true;
      reactions_[id].dcqcn.on_cnp(SimTime(time));
    }
    return std::nullopt;
  }
  const bool is_alarm = packet.has(Packet::kAlarm);
  const auto kind = static_cast<Alarm::Kind>(packet.sequence);
  std::optional<Packet> request;
  if (is_alarm && !grants_.empty() && kind != Alarm::Kind::Timeout) {
    request = on_credit_alarm(id, kind, time, notes);
  }
  if (is_alarm && kind == Alarm::Kind::Ask) {
    return request;
  }
  if (!reliable_.empty()) {
    on_reliable_notice(packet, time, notes);
    return request;
  }
  if (control_ && !is_alarm) {
    control_->on_ack(id, packet.sequence, packet.has(Packet::kMarked), time);
  }
  resume(id, time);
  return request;
}

std::int64_t PacketSenders::payload_sent(std::uint32_t id) const {
  const SendingEnd& end = ends_[id];
  if (!reliable_.empty()) {
    return end.sent_bytes + reliable_[id].begun();
  }
  const bool is_sending = end.sending != kNoIndex;
  return end.sent_bytes + (is_sending ? messages_[end.sending].size - end.unsent : 0);
}

// Looks at a copy: an observer must not change anything.
double PacketSenders::rate(std::uint32_t id, Picoseconds time) const {
  const auto line = static_cast<double>(ends_[id].rate);
  if (control_) {
    SenderControl control = control_->control(id);
    return std::min(static_cast<double>(control.rate(SimTime(time)).bits_per_second()), line);
  }
  if (!ends_[id].was_cut) {
    return line;
  }
  DcqcnReaction reaction = reactions_[id].dcqcn;
  reaction.advance(SimTime(time));
  return std::min(reaction.current(), line);
}

void PacketSenders::add_payload(std::uint32_t id, std::vector<std::int64_t>& bytes) const {
  const SendingEnd& end = ends_[id];
  const auto add = [&](std::uint32_t path, std::uint32_t hops, std::int64_t sent) {
    for (std::uint32_t hop = 0; hop < hops; ++hop) {
      bytes[fabric_.positions()[path + hop]] += sent;
    }
  };
  const std::uint32_t spray = spray_of(id);
  if (spray == kNoIndex) {
    std::int64_t left = end.sent_bytes;
    for (const PacketRoutes::Change& change : fabric_.routes().of(id)) {
      const std::int64_t sent = std::min(left, change.payload);
      add(change.path.first, change.path.hops, sent);
      left -= sent;
    }
    add(end.path, end.hops, left);
    return;
  }
  for (const PacketSpray::SprayPath& path : sprays_[spray].paths()) {
    add(path.first, end.hops, path.bytes);
  }
}

PacketTargets::PacketTargets(const PacketFabric& fabric, const PacketMessages& messages,
                             std::vector<ReliableConnection>& reliable, PacketGrants& grants)
    : fabric_(fabric),
      messages_(messages),
      reliable_(reliable),
      grants_(grants),
      has_way_back_(fabric.has_way_back()),
      packets_per_ack_(static_cast<std::uint32_t>(fabric.options().packets_per_ack)) {
  const PacketOptions& options = fabric.options();
  can_lose_ = !options.sends_again() && fabric.can_lose();
  const ControlTraits traits = control_traits(options);
  sends_cnps_ = traits.marks == MarkSignal::Cnps;
  cnp_interval_ = traits.cnp_interval.picoseconds();
  answers_each_ = traits.needs_acks();
}

void PacketTargets::add(const PacketPath& path) {
  ends_.push_back({.reverse = path.reverse, .notification = {}, .hops = path.hops});
  if (fabric_.options().acks_wait()) {
    delays_.emplace_back();
  }
}

void PacketTargets::spray(std::uint32_t id, std::uint32_t number) {
  ends_[id].spray = number;
  if (number == sprays_.size()) {
    sprays_.emplace_back();
  }
}

bool PacketTargets::expect(std::uint32_t id, std::uint32_t slot) {
  ReceivingEnd& end = ends_[id];
  if (end.oldest != kNoIndex) {
    return false;
  }
  end.oldest = slot;
  return true;
}

PacketAnswers PacketTargets::take(const Packet& packet, Picoseconds time, PacketNotes& notes) {
  PacketAnswers answers;
  ReceivingEnd& end = ends_[packet.connection];
  if (!reliable_.empty()) [[unlikely]] {
    if (end.ways != kNoIndex) {
      count_way(end, packet);
    }
    take_reliably(end, packet, time, answers, notes);
    return answers;
  }
  if (!grants_.empty()) [[unlikely]] {
    grants_.on_received(packet.connection, packet.wire, time);
  }
  if (end.spray != kNoIndex) [[unlikely]] {
    take_sprayed(end, packet, time, notes);
  } else {
    if (can_lose_) [[unlikely]] {
      if (packet.sequence != end.expected) {
        return answers;
      }
      ++end.expected;
    }
    if (packet.has(Packet::kEndsMessage)) {
      complete(end, time, notes);
    }
  }
  if (has_way_back_) {
    answer_mark(end, packet, time, answers, notes);
    answer(end, packet, time, answers, notes);
  }
  return answers;
}

void PacketTargets::complete(ReceivingEnd& end, Picoseconds time, PacketNotes& notes) const {
  notes.whole.push_back({.time = time, .slot = end.oldest});
  ++notes.counts.completed;
  end.oldest = messages_[end.oldest].next;
}

// A message is complete when all of it and all before it have come. The paths end with the same
// link, so packets come in order of time.
void PacketTargets::take_sprayed(ReceivingEnd& end, const Packet& packet, Picoseconds time,
                                 PacketNotes& notes) {
  if (end.ways != kNoIndex) {
    count_way(end, packet);
  }
  SprayedArrivals& arrivals = sprays_[end.spray];
  notes.counts.reordered += packet.sequence == arrivals.expected() ? 0 : 1;
  const bool ends_message = packet.has(Packet::kEndsMessage);
  for (std::uint32_t left = arrivals.arrive(packet.sequence, ends_message); left > 0; --left) {
    complete(end, time, notes);
  }
}

Packet PacketTargets::on_way_back(const ReceivingEnd& end, std::uint32_t id, Picoseconds time,
                                  Packet packet) const {
  const auto* const change = fabric_.routes().at(id, time);
  packet.connection = id;
  packet.position = change != nullptr ? change->path.reverse : end.reverse;
  packet.left = change != nullptr ? change->path.hops : end.hops;
  packet.flags |= fabric_.options().acks_wait() ? Packet::kWaits : Packet::kControl;
  return packet;
}

// Answers a packet: a CNP if it is marked,
void PacketTargets::answer_mark(ReceivingEnd& end, const Packet& packet, Picoseconds time,
                                PacketAnswers& answers, PacketNotes& notes) const {
  if (packet.has(Packet::kMarked) && sends_cnps_ &&
      end.notification.on_marked(SimTime(cnp_interval_), SimTime(time))) {
    ++end.cnps;
    ++notes.counts.cnps;
    answers.add(on_way_back(end, packet.connection, time,
                            {.sequence = packet.sequence + 1,
                             .wire = static_cast<std::uint16_t>(fabric_.sizes().cnp),
                             .flags = Packet::kCnp}));
  }
}

// and an ACK, which echoes the mark.
void PacketTargets::answer(ReceivingEnd& end, const Packet& packet, Picoseconds time,
                           PacketAnswers& answers, PacketNotes& notes) const {
  ++end.unanswered;
  const bool is_due =
      end.unanswered >= packets_per_ack_ || (answers_each_ && end.spray != kNoIndex);
  if (packets_per_ack_ > 0 && (is_due || packet.has(Packet::kEndsMessage))) {
    end.unanswered = 0;
    ++notes.counts.acks;
    answers.add(on_way_back(end, packet.connection, time,
                            {.sequence = packet.sequence + 1,
                             .wire = static_cast<std::uint16_t>(fabric_.sizes().ack),
                             .flags = static_cast<std::uint8_t>(packet.flags & Packet::kMarked)}));
  }
}

}  // namespace trainyard
