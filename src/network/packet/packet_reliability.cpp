// SPDX-License-Identifier: Apache-2.0
#include "network/packet/packet_reliability.h"

#include <algorithm>
#include <utility>

#include "network/packet/packet_transport.h"

namespace trainyard {

ReliableConnection::ReliableConnection(const PacketOptions& options,
                                       const SelectiveSettings& selective)
    : mtu_(options.mtu.count()),
      source_{.rules = Retransmissions::source(options, selective)},
      target_{.rules = Retransmissions::target(options, selective)} {}

Psn ReliableConnection::packets_of(std::int64_t size) const {
  return static_cast<Psn>(std::max<std::int64_t>(1, (size + mtu_ - 1) / mtu_));
}

std::uint32_t ReliableConnection::place_of(Psn number) const {
  std::uint32_t low = 0;
  std::uint32_t high = source_.spans.size();
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (source_.spans.at(middle).first <= number ? low : high) = middle;
  }
  return low;
}

void ReliableConnection::add(std::int64_t size, Picoseconds time, std::uint64_t order,
                             MessageEnds ends) {
  if (ends != MessageEnds::Target) {
    source_.spans.push({.first = source_.end, .size = size, .time = time, .order = order});
  }
  source_.end += packets_of(size);
  if (ends != MessageEnds::Source) {
    target_.ends.push(source_.end);
  }
}

void ReliableConnection::post_due(Picoseconds now) {
  while (source_.posted < source_.spans.size() && source_.spans.at(source_.posted).time <= now) {
    const auto packets =
        static_cast<std::int64_t>(packets_of(source_.spans.at(source_.posted).size));
    std::visit([&](auto& rules) { rules.sender.post(packets); }, source_.rules);
    ++source_.posted;
  }
}

bool ReliableConnection::can_send() const {
  return std::visit([](const auto& rules) { return rules.sender.can_send(rules.settings); },
                    source_.rules);
}

ReliableConnection::Piece ReliableConnection::piece_of(Psn number) const {
  const Span& span = source_.spans.at(place_of(number));
  const auto before = static_cast<std::int64_t>(number - span.first) * mtu_;
  return {.number = number,
          .payload = std::min(mtu_, span.size - before),
          .message = span.size,
          .begins_message = number == span.first,
          .ends_message = number + 1 == end_of(span),
          .is_again = number < source_.sent};
}

ReliableConnection::Piece ReliableConnection::next() const {
  return piece_of(std::visit([](const auto& rules) { return rules.sender.next(); }, source_.rules));
}

ReliableConnection::Piece ReliableConnection::send(Picoseconds now) {
  const Psn number = std::visit(
      [&](auto& rules) { return rules.sender.send(rules.settings, SimTime(now)); }, source_.rules);
  const Piece piece = piece_of(number);
  source_.sent = std::max(source_.sent, number + 1);
  return piece;
}

std::optional<Psn> ReliableConnection::goes_back_to() const {
  return std::visit([](const auto& rules) { return rules.goes_back_to(); }, source_.rules);
}

PacketNews ReliableConnection::on_answer(std::uint32_t number, bool is_nak, Picoseconds now) {
  const PacketNews news = std::visit(
      [&](auto& rules) {
        return rules.on_ack(number, is_nak, SimTime(now), source_.acked, statements_);
      },
      source_.rules);
  if (!news.is_new) {
    return news;
  }
  source_.acked = news.next;
  while (!source_.spans.empty() && end_of(source_.spans.front()) <= source_.acked) {
    static_cast<void>(source_.spans.pop());
    --source_.posted;
  }
  return news;
}

Expiry ReliableConnection::on_timeout() {
  const Expiry expiry = std::visit([](auto& rules) { return rules.on_timeout(); }, source_.rules);
  source_.timeouts += expiry == Expiry::Timeout ? 1 : 0;
  return expiry;
}

std::span<const Psn> ReliableConnection::newly_lost() const {
  return std::visit([](const auto& rules) { return rules.newly_lost(); }, source_.rules);
}

std::optional<std::uint32_t> ReliableConnection::on_delay() {
  return std::get<TcpRules::Target>(target_.rules).on_delay();
}

std::optional<SimTime> ReliableConnection::smoothed_rtt() const {
  const auto* const tcp = std::get_if<TcpRules::Source>(&source_.rules);
  const SimTime time = tcp == nullptr ? SimTime() : tcp->sender.smoothed_rtt();
  return time > SimTime() ? std::optional(time) : std::nullopt;
}

Picoseconds ReliableConnection::deadline() const {
  return std::visit([](const auto& rules) { return rules.sender.deadline(); }, source_.rules)
      .picoseconds();
}

bool ReliableConnection::has_failed() const {
  return std::visit([](const auto& rules) { return rules.sender.has_failed(); }, source_.rules);
}

std::uint64_t ReliableConnection::order() const {
  return source_.spans.empty() ? 0 : source_.spans.at(place_of(source_.sent)).order;
}

std::int64_t ReliableConnection::begun() const {
  if (source_.sent == source_.end) {
    return 0;
  }
  const Span& span = source_.spans.at(place_of(source_.sent));
  return static_cast<std::int64_t>(source_.sent - span.first) * mtu_;
}

PacketAnswer ReliableConnection::on_packet(std::uint32_t lower, bool ends_message,
                                           int packets_per_ack) {
  return std::visit(
      [&](auto& rules) {
        return rules.on_packet(lower, ends_message, packets_per_ack, statements_);
      },
      target_.rules);
}

PacketAnswer ReliableConnection::on_trimmed(std::uint32_t lower) {
  return std::get<SelectiveRules::Target>(target_.rules).on_trimmed(lower, statements_);
}

std::uint32_t ReliableConnection::take_completed() {
  const Psn expected =
      std::visit([](const auto& rules) { return rules.receiver.expected(); }, target_.rules);
  std::uint32_t count = 0;
  while (!target_.ends.empty() && target_.ends.front() <= expected) {
    static_cast<void>(target_.ends.pop());
    ++count;
  }
  return count;
}

std::uint64_t ReliableConnection::resent() const {
  return resent_elsewhere_ +
         static_cast<std::uint64_t>(
             std::visit([](const auto& rules) { return rules.sender.resent(); }, source_.rules));
}

// From here on: what the ends of the engine's connections do with it.

// Returns the settings of selective repeat on this path. Where packets overtake each other as many
// of them may be under way once more as the path holds, and so many may come before one counts as
// lost. Where switches trim, only headers that come and timeouts tell of a loss.
SelectiveSettings PacketSenders::selective_for(const PacketPath& path, std::uint64_t rate,
                                               bool is_spread) const {
  SelectiveSettings settings = fabric_.options().selective;
  if (settings.window == 0) {
    const Picoseconds round_trip =
        fabric_.stored_time(path.first, path.hops, fabric_.sizes().full) +
        fabric_.stored_time(path.reverse, path.hops, fabric_.sizes().ack);
    const Picoseconds packet =
        transfer_time(Bytes(fabric_.sizes().full), Bandwidth(static_cast<std::int64_t>(rate)))
            .picoseconds();
    settings = with_time_for(settings, SimTime(round_trip));
    settings.window =
        (is_spread || fabric_.options().trims ? 2 : 1) * ((round_trip + packet - 1) / packet);
  }
  settings.window = std::min(settings.window, kMaxOutstanding);
  settings.reorder = is_spread ? std::max<std::int64_t>(1, settings.window / 2) : 0;
  if (fabric_.options().trims) {
    settings.reorder = settings.window;
  }
  return settings;
}

// Adds both ends; returns how long a window may be, so that no timeout is shorter.
Picoseconds PacketSenders::add_reliable(const PacketPath& path, std::uint64_t rate) {
  const PacketOptions& options = fabric_.options();
  const bool is_spread =
      fabric_.chooses() && options.adaptive->unit == AdaptiveOptions::Unit::Packet;
  reliable_.emplace_back(options, selective_for(path, rate, is_spread));
  timers_.push_back(kNeverTime);
  return Retransmissions::shortest_timeout(options).picoseconds();
}

// It is the turn of a connection at the port where it begins. If an ACK has come since it got into
// line, there may be nothing to send any more.
std::optional<Packet> PacketSenders::next_reliable(std::uint32_t id, Picoseconds start,
                                                   PacketNotes& notes) {
  SendingEnd& end = ends_[id];
  ReliableConnection& both = reliable_[id];
  end.is_in_line = false;
  if (!both.can_send()) {
    return std::nullopt;
  }
  const ReliableConnection::Piece piece = both.send(start);
  if (piece.ends_message && !piece.is_again) {
    leave(end, piece.message, notes);
  }
  ++end.sequence;
  PacketPath path{.first = end.path, .hops = end.hops};
  if (const std::uint32_t spray = spray_of(id); spray != kNoIndex) [[unlikely]] {
    path.first = sprays_[spray].next_path(piece.is_again ? 0 : piece.payload, start);
  } else if (const auto* const change = fabric_.routes().at(id, start)) [[unlikely]] {
    path = change->path;
    fabric_.routes().count(id, start, piece.is_again ? 0 : piece.payload);
  }
  return Packet{
      .connection = id,
      .position = path.first,
      .sequence = static_cast<std::uint32_t>(piece.number),
      .wire = static_cast<std::uint16_t>(fabric_.wire_of(piece.payload, piece.begins_message)),
      .left = path.hops,
      .flags = piece.ends_message ? Packet::kEndsMessage : std::uint8_t{0}};
}

void PacketSenders::go_on_reliably(const Packet& packet, Picoseconds start, PacketNotes& notes) {
  const std::uint32_t id = packet.connection;
  SendingEnd& end = ends_[id];
  set_timer(id, notes);
  if (!reliable_[id].can_send() || (control_ && !fits(id, start))) {
    return;
  }
  end.is_in_line = true;
  if (end.next_start <= start) {
    sources_[end.source].make_ready(id);
  } else {
    sources_[end.source].wait(id, end.next_start, reliable_[id].order());
  }
}

// Data at its target.
void PacketTargets::take_reliably(ReceivingEnd& end, const Packet& packet, Picoseconds time,
                                  PacketAnswers& answers, PacketNotes& notes) {
  ReliableConnection& both = reliable_[packet.connection];
  const PacketAnswer said = packet.is_trimmed()
                                ? both.on_trimmed(packet.sequence)
                                : both.on_packet(packet.sequence, packet.has(Packet::kEndsMessage),
                                                 static_cast<int>(packets_per_ack_));
  for (std::uint32_t left = both.take_completed(); left > 0; --left) {
    complete(end, time, notes);
  }
  notes.counts.reordered += end.spray != kNoIndex && said.is_nak && !packet.is_trimmed() ? 1 : 0;
  if (!grants_.empty() && said.is_new) {
    grants_.on_received(packet.connection, packet.wire, time);
  }
  if (!packet.is_trimmed()) {
    answer_mark(end, packet, time, answers, notes);
  }
  if (said.states && fabric_.is_port_elsewhere(source_port(end))) [[unlikely]] {
    notes.statements.push_back(
        {.connection = packet.connection, .statement = both.take_statement()});
  }
  // The ACK of several packets of TCP echoes the mark of any of them.
  const bool is_marked = packet.has(Packet::kMarked) || end.unanswered > 0;
  end.unanswered = said.states && !said.is_sent && is_marked ? 1 : 0;
  if (said.is_sent) {
    ++notes.counts.acks;
    const unsigned nak = said.is_nak ? Packet::kNak : 0U;
    const unsigned mark = is_marked ? Packet::kMarked : 0U;
    answers.add(on_way_back(end, packet.connection, time,
                            {.sequence = said.number,
                             .wire = static_cast<std::uint16_t>(fabric_.sizes().ack),
                             .flags = static_cast<std::uint8_t>(mark | nak)}));
  }
  if (!delays_.empty()) [[unlikely]] {
    Delay& delay = delays_[packet.connection];
    if (said.is_sent) {
      delay.end = kNeverTime;
    } else if (delay.end == kNeverTime) {
      delay.end = time + fabric_.options().tcp.delayed_ack.picoseconds();
      set_delay(packet.connection, time, fabric_.positions()[packet.position - 1], notes);
    }
  }
}

// The alarm comes to the last port of the path so long before the ACK has to go out as a packet
// takes to the end of its link: what begins there later cannot come in time to be answered, too.
void PacketTargets::set_delay(std::uint32_t id, Picoseconds now, std::uint32_t port,
                              PacketNotes& notes) {
  Delay& delay = delays_[id];
  if (delay.alarm != kNeverTime) {
    return;
  }
  delay.alarm = std::max(now, delay.end - fabric_.reach(fabric_.ports()[port]));
  notes.alarms.push(
      {.time = delay.alarm, .port = port, .connection = id, .kind = Alarm::Kind::Delay});
}

std::optional<Packet> PacketTargets::on_delay(std::uint32_t id, Picoseconds now, std::uint32_t port,
                                              PacketNotes& notes) {
  Delay& delay = delays_[id];
  delay.alarm = kNeverTime;
  if (delay.end == kNeverTime) {
    return std::nullopt;
  }
  const Picoseconds time = now + fabric_.reach(fabric_.ports()[port]);
  if (delay.end > time) {
    set_delay(id, now, port, notes);
    return std::nullopt;
  }
  delay.end = kNeverTime;
  const std::optional<std::uint32_t> number = reliable_[id].on_delay();
  if (!number) {
    return std::nullopt;
  }
  ReceivingEnd& end = ends_[id];
  ++notes.counts.acks;
  const unsigned mark = std::exchange(end.unanswered, 0) > 0 ? Packet::kMarked : 0U;
  return on_way_back(end, id, time,
                     {.sequence = *number,
                      .wire = static_cast<std::uint16_t>(fabric_.sizes().ack),
                      .flags = static_cast<std::uint8_t>(mark)});
}

// An ACK is back at its source, or an alarm comes.
void PacketSenders::on_reliable_notice(const Packet& packet, Picoseconds time, PacketNotes& notes) {
  const std::uint32_t id = packet.connection;
  ReliableConnection& both = reliable_[id];
  const bool had_failed = both.has_failed();
  if (!packet.has(Packet::kAlarm)) {
    const auto heard = both.on_answer(packet.sequence, packet.has(Packet::kNak), time);
    if (control_ && heard.is_new) {
      control_->on_ack(id, {.next = static_cast<std::uint32_t>(heard.next),
                            .number = static_cast<std::uint32_t>(heard.number),
                            .is_marked = packet.has(Packet::kMarked),
                            .time = time,
                            .others = heard.others});
      if (heard.trimmed) {
        control_->lose(id, static_cast<std::uint32_t>(*heard.trimmed));
      }
      take_back_lost(id);
      if (heard.is_loss) {
        control_->control(id).on_loss(SimTime(time));
      }
    }
  } else if (packet.sequence == static_cast<std::uint32_t>(Alarm::Kind::Post)) {
    both.post_due(time);
  } else if (timers_[id] == time) {
    timers_[id] = kNeverTime;
    if (both.deadline() <= time) {
      const Expiry expiry = both.on_timeout();
      if (control_ && expiry == Expiry::Timeout) {
        control_->control(id).on_timeout(SimTime(time));
      }
      take_back_lost(id);
      if (control_ && expiry == Expiry::Loss) {
        control_->control(id).on_loss(SimTime(time));
      }
    }
  }
  if (const auto number = both.goes_back_to(); control_ && number) {
    control_->go_back(id, static_cast<std::uint32_t>(*number));
  }
  if (both.has_failed() && !had_failed) {
    notes.failures.push_back({.time = time, .connection = id});
  }
  set_timer(id, notes);
  resume(id, time);
}

void PacketSenders::take_back_lost(std::uint32_t id) {
  for (const Psn number : control_ ? reliable_[id].newly_lost() : std::span<const Psn>()) {
    control_->lose(id, static_cast<std::uint32_t>(number));
  }
}

// There is at most one alarm of a connection that is not void. Deadlines that move to later ones
// do not touch it: it is put off when it comes.
void PacketSenders::set_timer(std::uint32_t id, PacketNotes& notes) {
  const Picoseconds deadline = reliable_[id].deadline();
  if (deadline < timers_[id]) {
    timers_[id] = deadline;
    notes.alarms.push(
        {.time = deadline, .port = ends_[id].port, .connection = id, .kind = Alarm::Kind::Timeout});
  }
}

void PacketSenders::settle(PacketNotes& notes) {
  while (!notes.alarms.empty()) {
    const Alarm alarm = notes.alarms.top();
    const std::uint32_t id = alarm.connection;
    const bool is_ask = alarm.kind == Alarm::Kind::Ask;
    if (!is_ask && alarm.kind != Alarm::Kind::Timeout) {
      return;
    }
    Picoseconds& timer = is_ask ? grants_.timer(id) : timers_[id];
    const Picoseconds deadline =
        is_ask ? grants_.deadline(id, credit_of(id)) : reliable_[id].deadline();
    if (timer == alarm.time && deadline == alarm.time) {
      return;
    }
    notes.alarms.pop();
    if (timer == alarm.time) {
      timer = kNeverTime;
      is_ask ? set_ask_timer(id, notes) : set_timer(id, notes);
    }
  }
}

}  // namespace trainyard
