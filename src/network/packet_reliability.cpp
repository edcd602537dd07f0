// SPDX-License-Identifier: Apache-2.0
#include "network/packet_reliability.h"

#include <algorithm>
#include <utility>

#include "network/packet_engine.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {

std::variant<ReliableConnection::GoBackNEnds, ReliableConnection::SelectiveEnds>
ReliableConnection::make_ends(const PacketOptions& options, std::int64_t window) {
  if (options.retransmission == Retransmission::GoBackN) {
    return GoBackNEnds{.settings = options.retry};
  }
  CHECK(options.retransmission == Retransmission::SelectiveRepeat, "nothing is sent again");
  SelectiveSettings settings = options.selective;
  settings.window = window;
  return SelectiveEnds{.settings = settings,
                       .sender = SelectiveSender(settings),
                       .receiver = SelectiveReceiver(settings)};
}

ReliableConnection::ReliableConnection(const PacketOptions& options, std::int64_t window)
    : ends_(make_ends(options, window)), mtu_(options.mtu.count()) {}

Psn ReliableConnection::packets_of(std::int64_t size) const {
  return static_cast<Psn>(std::max<std::int64_t>(1, (size + mtu_ - 1) / mtu_));
}

std::uint32_t ReliableConnection::place_of(Psn number) const {
  std::uint32_t low = 0;
  std::uint32_t high = spans_.size();
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (spans_.at(middle).first <= number ? low : high) = middle;
  }
  return low;
}

void ReliableConnection::add(std::int64_t size, Picoseconds time, std::uint64_t order) {
  spans_.push({.first = end_, .size = size, .time = time, .order = order});
  end_ += packets_of(size);
}

void ReliableConnection::post_due(Picoseconds now) {
  while (posted_ < spans_.size() && spans_.at(posted_).time <= now) {
    const auto packets = static_cast<std::int64_t>(packets_of(spans_.at(posted_).size));
    std::visit([&](auto& ends) { ends.sender.post(packets); }, ends_);
    ++posted_;
  }
}

bool ReliableConnection::can_send() const {
  return std::visit([](const auto& ends) { return ends.sender.can_send(ends.settings); }, ends_);
}

ReliableConnection::Piece ReliableConnection::send(Picoseconds now) {
  const Psn number =
      std::visit([&](auto& ends) { return ends.sender.send(ends.settings, SimTime(now)); }, ends_);
  const Span& span = spans_.at(place_of(number));
  const auto before = static_cast<std::int64_t>(number - span.first) * mtu_;
  const bool is_again = number < sent_;
  sent_ = std::max(sent_, number + 1);
  return {.number = number,
          .payload = std::min(mtu_, span.size - before),
          .message = span.size,
          .begins_message = number == span.first,
          .ends_message = number + 1 == end_of(span),
          .is_again = is_again};
}

void ReliableConnection::on_answer(std::uint32_t number, bool is_nak, Picoseconds now) {
  const SimTime time(now);
  if (auto* const ends = std::get_if<GoBackNEnds>(&ends_)) {
    const Psn expected = whole_number(number, acked_);
    if (is_nak) {
      static_cast<void>(ends->sender.on_nak(ends->settings, expected, time));
    } else {
      ends->sender.on_ack(ends->settings, expected, time);
    }
    acked_ = ends->sender.oldest();
  } else {
    auto& selective = std::get<SelectiveEnds>(ends_);
    // ACKs overtake each other only where the path changes: what an overtaken one said is lost.
    const std::uint32_t ahead = number - selective.first_said;
    if (ahead >= selective.said.size()) {
      return;
    }
    for (std::uint32_t i = 0; i < ahead; ++i) {
      static_cast<void>(selective.said.pop());
    }
    const Statement statement = selective.said.pop();
    selective.first_said = number + 1;
    const std::int64_t newly =
        is_nak ? selective.sender.on_nack(selective.settings, statement.expected,
                                          statement.received, time)
               : selective.sender.on_ack(selective.settings, statement.expected, time);
    acked_ += static_cast<Psn>(newly);
  }
  while (!spans_.empty() && completed_ > 0 && end_of(spans_.front()) <= acked_) {
    static_cast<void>(spans_.pop());
    --posted_;
    --completed_;
  }
}

void ReliableConnection::on_timeout(Picoseconds now) {
  ++timeouts_;
  if (auto* const ends = std::get_if<GoBackNEnds>(&ends_)) {
    static_cast<void>(ends->sender.on_timeout(ends->settings));
  } else {
    auto& selective = std::get<SelectiveEnds>(ends_);
    static_cast<void>(selective.sender.on_timeout(selective.settings, SimTime(now)));
  }
}

Picoseconds ReliableConnection::deadline() const {
  return std::visit([](const auto& ends) { return ends.sender.deadline(); }, ends_).picoseconds();
}

bool ReliableConnection::has_failed() const {
  return std::visit([](const auto& ends) { return ends.sender.has_failed(); }, ends_);
}

std::uint64_t ReliableConnection::order() const {
  return spans_.empty() ? 0 : spans_.at(place_of(sent_)).order;
}

ReliableConnection::Answer ReliableConnection::on_packet(std::uint32_t lower, bool ends_message,
                                                         int packets_per_ack) {
  if (auto* const ends = std::get_if<GoBackNEnds>(&ends_)) {
    const Psn number = whole_number(lower, ends->receiver.expected());
    const Receipt receipt = ends->receiver.on_packet(number, ends_message, packets_per_ack);
    return {.is_sent = receipt.reply != Receipt::Reply::None,
            .is_nak = receipt.reply == Receipt::Reply::Nak,
            .number = static_cast<std::uint32_t>(receipt.expected)};
  }
  auto& selective = std::get<SelectiveEnds>(ends_);
  const Psn number = whole_number(lower, selective.receiver.expected());
  const SelectiveReceiver::Answer answer = selective.receiver.on_packet(number);
  const std::uint32_t own = selective.first_said + selective.said.size();
  selective.said.push({.expected = answer.expected, .received = number});
  return {.is_sent = true, .is_nak = answer.is_nack, .number = own};
}

std::uint32_t ReliableConnection::take_completed() {
  const Psn expected = std::visit([](const auto& ends) { return ends.receiver.expected(); }, ends_);
  std::uint32_t count = 0;
  while (completed_ < spans_.size() && end_of(spans_.at(completed_)) <= expected) {
    ++completed_;
    ++count;
  }
  return count;
}

std::uint64_t ReliableConnection::resent() const {
  return static_cast<std::uint64_t>(
      std::visit([](const auto& ends) { return ends.sender.resent(); }, ends_));
}

// From here on: what the engine does with such connections.

void PacketEngine::check_retransmission() const {
  const bool is_repeat = options_.retransmission == Retransmission::SelectiveRepeat;
  const SimTime least =
      is_repeat ? std::min(options_.selective.short_timeout, options_.selective.long_timeout)
                : options_.retry.timeout;
  if (options_.retransmission != Retransmission::None && least <= SimTime()) {
    throw ConfigError(
        "packet engine: expected a retransmission timeout of more than 0, found less");
  }
}

// Both ends of a connection; how long a window may be, so that no timeout is shorter.
Picoseconds PacketEngine::add_ends(const Connection& connection) {
  const bool is_repeat = options_.retransmission == Retransmission::SelectiveRepeat;
  std::int64_t window = options_.selective.window;
  if (is_repeat && window == 0) {
    const Picoseconds round_trip = stored_time(connection.path, connection.hops, full_wire_) +
                                   stored_time(connection.reverse, connection.hops, ack_wire_);
    const Picoseconds packet =
        transfer_time(Bytes(full_wire_), Bandwidth(static_cast<std::int64_t>(connection.rate)))
            .picoseconds();
    window = std::min((round_trip + packet - 1) / packet, kMostOutstanding);
  }
  reliable_.push_back({.ends = ReliableConnection(options_, window)});
  return (is_repeat ? std::min(options_.selective.short_timeout, options_.selective.long_timeout)
                    : options_.retry.timeout)
      .picoseconds();
}

// Of so many bytes along a path of idle links, stored as a whole at every node.
Picoseconds PacketEngine::stored_time(std::uint32_t first, std::uint8_t hops,
                                      std::int64_t wire) const {
  Picoseconds time = 0;
  for (std::uint32_t hop = 0; hop < hops; ++hop) {
    const Port& port = ports_[positions_[first + hop]];
    time += time_on_line(port, wire) + (hop + 1 == hops ? port.end_delay : port.through_delay);
  }
  return time;
}

std::pair<NodeId, NodeId> PacketEngine::ends_of(std::uint32_t id) const {
  const Connection& connection = connections_[id];
  const auto link = [&](std::uint32_t hop) -> const Link& {
    return topology_.link(LinkId(ports_[positions_[connection.path + hop]].link));
  };
  return {link(0).source, link(connection.hops - 1U).target};
}

void PacketEngine::post(std::uint32_t id, const Message& message) {
  reliable_[id].ends.add(message.size, message.time, message.order);
  alarms_.push({.time = message.time,
                .port = connections_[id].port,
                .connection = id,
                .kind = Alarm::Kind::Post});
}

// It is the turn of a connection at the port where it begins. If an ACK has come since it got into
// line, there may be nothing to send any more.
void PacketEngine::send_reliably(Port& port, std::uint32_t index, std::uint32_t id,
                                 Picoseconds start) {
  Reliable& reliable = reliable_[id];
  reliable.is_in_line = false;
  if (!reliable.ends.can_send()) {
    return;
  }
  Connection& connection = connections_[id];
  const ReliableConnection::Piece piece = reliable.ends.send(start);
  if (piece.ends_message && !piece.is_again) {
    ++counts_.messages;
    counts_.bytes += piece.message;
    connection.sent_bytes += piece.message;
  }
  ++connection.sequence;
  const Packet packet{
      .connection = id,
      .position = connection.path,
      .sequence = static_cast<std::uint32_t>(piece.number),
      .wire = static_cast<std::uint16_t>(wire_of(piece.payload, piece.begins_message)),
      .left = connection.hops,
      .flags = piece.ends_message ? Packet::kEndsMessage : std::uint8_t{0}};
  ++port.counters.packets;
  begin(port, index, packet, start);
  pace(id, packet, start);
  set_timer(id);
  if (reliable.ends.can_send()) {
    reliable.is_in_line = true;
    if (connection.next_start <= start) {
      sources_[port.source].make_ready(id);
    } else {
      sources_[port.source].wait(id, connection.next_start, reliable.ends.order());
    }
  }
}

// Data at its target.
void PacketEngine::receive(Port& port, std::uint32_t index, const Packet& packet,
                           Picoseconds time) {
  Connection& connection = connections_[packet.connection];
  ReliableConnection& ends = reliable_[packet.connection].ends;
  const ReliableConnection::Answer answer =
      ends.on_packet(packet.sequence, packet.has(Packet::kEndsMessage), options_.packets_per_ack);
  for (std::uint32_t left = ends.take_completed(); left > 0; --left) {
    complete(connection, time);
  }
  answer_mark(port, index, packet, time);
  if (answer.is_sent) {
    ++counts_.acks;
    notify(
        port, index,
        {.connection = packet.connection,
         .position = connection.reverse,
         .sequence = answer.number,
         .wire = static_cast<std::uint16_t>(ack_wire_),
         .left = connection.hops,
         .flags = static_cast<std::uint8_t>(Packet::kControl | (answer.is_nak ? Packet::kNak : 0))},
        time);
  }
}

// An ACK is back at its source, or an alarm comes.
void PacketEngine::take_answer_or_alarm(const Packet& packet, Picoseconds time) {
  const std::uint32_t id = packet.connection;
  Reliable& reliable = reliable_[id];
  ReliableConnection& ends = reliable.ends;
  const bool had_failed = ends.has_failed();
  if (!packet.has(Packet::kAlarm)) {
    ends.on_answer(packet.sequence, packet.has(Packet::kNak), time);
  } else if (packet.sequence == static_cast<std::uint32_t>(Alarm::Kind::Post)) {
    ends.post_due(time);
  } else if (reliable.timer == time) {
    reliable.timer = kNeverTime;
    if (ends.deadline() <= time) {
      ends.on_timeout(time);
    }
  }
  if (ends.has_failed() && !had_failed) {
    failures_.push_back({.connection = id, .time = time});
  }
  set_timer(id);
  if (ends.can_send() && !reliable.is_in_line) {
    reliable.is_in_line = true;
    sources_[ports_[connections_[id].port].source].wait(
        id, std::max(time, connections_[id].next_start), ends.order());
  }
}

// There is at most one alarm of a connection that is not void. Deadlines that move to later ones
// do not touch it: it is put off when it comes.
void PacketEngine::set_timer(std::uint32_t id) {
  Reliable& reliable = reliable_[id];
  const Picoseconds deadline = reliable.ends.deadline();
  if (deadline < reliable.timer) {
    reliable.timer = deadline;
    alarms_.push({.time = deadline,
                  .port = connections_[id].port,
                  .connection = id,
                  .kind = Alarm::Kind::Timeout});
  }
}

// Drops the alarms at the head that are void, so that the next one is something to wait for.
void PacketEngine::settle_alarms() {
  while (!alarms_.empty() && alarms_.top().kind == Alarm::Kind::Timeout) {
    const Alarm alarm = alarms_.top();
    Reliable& reliable = reliable_[alarm.connection];
    if (reliable.timer == alarm.time && reliable.ends.deadline() == alarm.time) {
      return;
    }
    alarms_.pop();
    if (reliable.timer == alarm.time) {
      reliable.timer = kNeverTime;
      set_timer(alarm.connection);
    }
  }
}

// Hands what comes in this window to the ports.
void PacketEngine::pull_alarms() {
  settle_alarms();
  while (!alarms_.empty() && alarms_.top().time < end_time_) {
    const Alarm alarm = alarms_.top();
    alarms_.pop();
    Packet packet{.connection = alarm.connection,
                  .position = 0,
                  .sequence = static_cast<std::uint32_t>(alarm.kind),
                  .wire = 0,
                  .left = 0,
                  .flags = static_cast<std::uint8_t>(Packet::kControl | Packet::kAlarm)};
    if (alarm.kind == Alarm::Kind::LinkDown) {
      packet.flags = Packet::kPause;  // XON: nothing stops a port whose link is down.
    }
    hand_alarm(alarm.port, {.time = alarm.time, .packet = packet});
    settle_alarms();
  }
}

}  // namespace trainyard
