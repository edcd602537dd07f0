// SPDX-License-Identifier: Apache-2.0
// The two ends of a connection: cutting messages into packets, pacing, ACKs and CNPs.
#include <algorithm>

#include "network/packet_engine.h"
#include "sim/check.h"

namespace trainyard {

// Bytes on the line of the next packet of the message that is being sent.
std::int64_t PacketEngine::next_wire(const Connection& connection) const {
  const std::int64_t payload = std::min(connection.unsent, options_.mtu.count());
  const bool is_first = connection.unsent == messages_[connection.sending].size;
  return is_first || payload != options_.mtu.count() ? wire_of(payload, is_first) : full_wire_;
}

// Cuts the next packet off the message that `connection` is sending.
Packet PacketEngine::next_of(std::uint32_t id) {
  Connection& connection = connections_[id];
  const Message& message = messages_[connection.sending];
  const std::int64_t wire = next_wire(connection);
  const std::int64_t payload = std::min(connection.unsent, options_.mtu.count());
  connection.unsent -= payload;
  const bool ends_message = connection.unsent == 0;
  if (ends_message) {
    ++counts_.messages;
    counts_.bytes += message.size;
    connection.sent_bytes += message.size;
    connection.sending = message.next;
    if (connection.sending != kNoIndex) {
      connection.unsent = messages_[connection.sending].size;
    }
  }
  std::uint32_t position = connection.path;
  if (connection.spray != kNoIndex) [[unlikely]] {
    position = sprays_[connection.spray].next_path(payload, connection.sequence, ends_message);
  }
  return {.connection = id,
          .position = position,
          .sequence = connection.sequence++,
          .wire = static_cast<std::uint16_t>(wire),
          .left = connection.hops,
          .flags = ends_message ? Packet::kEndsMessage : std::uint8_t{0}};
}

// After a packet of `connection` began at `start`: when the next one may.
void PacketEngine::pace(std::uint32_t id, const Packet& packet, Picoseconds start) {
  Connection& connection = connections_[id];
  if (connection.is_paced || connection.was_cut) {
    std::uint64_t rate = connection.rate;
    if (connection.was_cut) {
      DcqcnReaction& reaction = reactions_[id];
      reaction.advance(SimTime(start));
      reaction.on_sent(SimTime(start), Bytes(packet.wire));
      rate = std::min(rate, static_cast<std::uint64_t>(reaction.rate().bits_per_second()));
    }
    connection.next_start = start + time_at(rate, packet.wire);
  }
}

// It takes its next turn then.
void PacketEngine::go_on(const Port& port, std::uint32_t id, const Packet& packet,
                         Picoseconds start) {
  if (control_) [[unlikely]] {
    if (!goes_on_controlled(port, id, packet, start)) {
      return;
    }
  } else {
    pace(id, packet, start);
  }
  const Connection& connection = connections_[id];
  if (connection.sending == kNoIndex) {
    return;
  }
  const Message& message = messages_[connection.sending];
  const Picoseconds time = std::max(message.time, connection.next_start);
  if (time <= start) {
    sources_[port.source].make_ready(id);
  } else {
    sources_[port.source].wait(id, time, message.order);
  }
}

// The last link is a FIFO, so what happens at its end at `time` is known when the packet begins to
// leave on it.
void PacketEngine::deliver(Port& port, std::uint32_t index, const Packet& packet,
                           Picoseconds time) {
  DCHECK(time >= end_time_, "a packet ends in the window in which it was sent");
  if (packet.has(Packet::kControl)) {
    const bool is_heard = !reliable_.empty() || (control_ && control_->needs_acks());
    if (packet.has(Packet::kCnp) || is_heard) {
      notify(port, index, packet, time);
    }
    return;
  }
  if (!reliable_.empty()) {
    receive(port, index, packet, time);
    return;
  }
  Connection& connection = connections_[packet.connection];
  if (connection.spray != kNoIndex) [[unlikely]] {
    arrive_sprayed(connection, packet, time);
    if (has_way_back()) {
      answer(port, index, packet, time);
    }
    return;
  }
  if (can_lose_) [[unlikely]] {
    if (packet.sequence != connection.expected) {
      return;
    }
    ++connection.expected;
  }
  if (packet.has(Packet::kEndsMessage)) {
    complete(connection, time);
  }
  if (has_way_back()) {
    answer(port, index, packet, time);
  }
}

void PacketEngine::complete(Connection& connection, Picoseconds time) {
  const std::uint32_t slot = connection.oldest;
  Message& message = messages_[slot];
  completions_->push_back(
      {.time = time, .order = message.order, .done = message.done, .token = message.token});
  ++counts_.completed;
  connection.oldest = message.next;
  message.next = free_message_;
  free_message_ = slot;
}

// A message is complete when all of it and all before it have come. The paths end with the same
// link, so packets come in order of time.
void PacketEngine::arrive_sprayed(Connection& connection, const Packet& packet, Picoseconds time) {
  PacketSpray& spray = sprays_[connection.spray];
  counts_.reordered += packet.sequence == spray.expected() ? 0 : 1;
  for (std::uint32_t left = spray.arrive(packet.sequence); left > 0; --left) {
    complete(connection, time);
  }
}

// Something happens at the end of the link of `port` at `time`.
void PacketEngine::notify(Port& port, std::uint32_t index, const Packet& packet, Picoseconds time) {
  if (port.notices.empty()) {
    add_to_calendar(item_of(index, CalendarItem::Notices), time);
  }
  port.notices.push({.time = time, .packet = packet});
}

// What the target says to a packet that reaches it at `time` by `port`: a CNP if it is marked,
void PacketEngine::answer_mark(Port& port, std::uint32_t index, const Packet& packet,
                               Picoseconds time) {
  Connection& connection = connections_[packet.connection];
  if (packet.has(Packet::kMarked) && sends_cnps_ &&
      connection.notification.on_marked(CnpRule::Immediate, SimTime(cnp_interval_),
                                        SimTime(time))) {
    ++connection.cnps;
    ++counts_.cnps;
    notify(port, index,
           {.connection = packet.connection,
            .position = connection.reverse,
            .sequence = packet.sequence + 1,
            .wire = static_cast<std::uint16_t>(cnp_wire_),
            .left = connection.hops,
            .flags = static_cast<std::uint8_t>(Packet::kControl | Packet::kCnp)},
           time);
  }
}

// and an ACK.
void PacketEngine::answer(Port& port, std::uint32_t index, const Packet& packet, Picoseconds time) {
  answer_mark(port, index, packet, time);
  Connection& connection = connections_[packet.connection];
  ++connection.unanswered;
  const bool is_due = connection.unanswered >= static_cast<std::uint32_t>(options_.packets_per_ack);
  if (options_.packets_per_ack > 0 && (is_due || packet.has(Packet::kEndsMessage))) {
    connection.unanswered = 0;
    ++counts_.acks;
    // The mark is echoed.
    notify(
        port, index,
        {.connection = packet.connection,
         .position = connection.reverse,
         .sequence = packet.sequence + 1,
         .wire = static_cast<std::uint16_t>(ack_wire_),
         .left = connection.hops,
         .flags = static_cast<std::uint8_t>(Packet::kControl | (packet.flags & Packet::kMarked))},
        time);
  }
}

// What is no data and reaches a port: a PFC frame, a control packet on its way, or one at its end.
void PacketEngine::admit_special(Port& port, const Due& due) {
  const Packet& packet = due.packet;
  if (packet.has(Packet::kCredit)) {
    take_credits(port, due);
  } else if (packet.has(Packet::kPause)) {
    const bool stop = packet.has(Packet::kMarked);
    const bool was_paused = (port.stops & Port::kPaused) != 0;
    port.counters.pauses_received += stop ? 1 : 0;
    if (stop && !was_paused) {
      port.paused_since = due.time;
      port.stops |= Port::kPaused;
    } else if (!stop && was_paused) {
      port.counters.paused_time += due.time - port.paused_since;
      port.stops &= static_cast<std::uint8_t>(~Port::kPaused);
    }
  } else if (packet.left > 0) {
    port.control.push(packet);
    ++port.urgent;
  } else {
    take_notice(packet, due.time);
  }
}

void PacketEngine::take_notice(const Packet& packet, Picoseconds time) {
  if (control_) {
    take_answer(packet, time);
    return;
  }
  if (!packet.has(Packet::kCnp)) {
    take_answer_or_alarm(packet, time);
    return;
  }
  connections_[packet.connection].was_cut = true;
  reactions_[packet.connection].on_cnp(SimTime(time));
}

double PacketEngine::rate(std::uint32_t connection) const {
  const Connection& record = connections_[connection];
  if (control_) {
    SenderControl control = control_->control(connection);
    return static_cast<double>(control.rate(SimTime(begin_time_)).bits_per_second());
  }
  return record.was_cut ? reactions_[connection].current() : static_cast<double>(record.rate);
}

}  // namespace trainyard
