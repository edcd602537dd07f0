// SPDX-License-Identifier: Apache-2.0
#include "network/packet/packet_reliability.h"

#include <algorithm>
#include <utility>

#include "network/packet/packet_transport.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {

ReliableConnection::Source ReliableConnection::make_source(const PacketOptions& options,
                                                           const SelectiveSettings& selective) {
  if (options.retransmission == Retransmission::GoBackN) {
    return {.rules = GoBackNSource{.settings = options.retry}};
  }
  CHECK(options.retransmission == Retransmission::SelectiveRepeat, "nothing is sent again");
  return {.rules = SelectiveSource{.settings = selective, .sender = SelectiveSender(selective)}};
}

ReliableConnection::Target ReliableConnection::make_target(const PacketOptions& options,
                                                           const SelectiveSettings& selective) {
  if (options.retransmission == Retransmission::GoBackN) {
    return {.rules = GoBackNReceiver()};
  }
  return {.rules = SelectiveReceiver(selective)};
}

ReliableConnection::ReliableConnection(const PacketOptions& options,
                                       const SelectiveSettings& selective)
    : mtu_(options.mtu.count()),
      source_(make_source(options, selective)),
      target_(make_target(options, selective)) {}

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

void ReliableConnection::add(std::int64_t size, Picoseconds time, std::uint64_t order) {
  source_.spans.push({.first = source_.end, .size = size, .time = time, .order = order});
  source_.end += packets_of(size);
  target_.ends.push(source_.end);
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
  const auto* const rules = std::get_if<GoBackNSource>(&source_.rules);
  return rules == nullptr ? std::nullopt : std::optional(rules->sender.next());
}

ReliableConnection::Heard ReliableConnection::on_answer(std::uint32_t number, bool is_nak,
                                                        Picoseconds now) {
  const SimTime time(now);
  Heard heard{.is_new = true};
  if (auto* const rules = std::get_if<GoBackNSource>(&source_.rules)) {
    const Psn expected = whole_number(number, source_.acked);
    const Psn before = rules->sender.next();
    if (is_nak) {
      static_cast<void>(rules->sender.on_nak(rules->settings, expected, time));
    } else {
      rules->sender.on_ack(rules->settings, expected, time);
    }
    source_.acked = rules->sender.oldest();
    heard.next = source_.acked;
    heard.number = expected - 1;
    heard.is_loss = rules->sender.next() < before;
  } else {
    auto& selective = std::get<SelectiveSource>(source_.rules);
    // ACKs overtake each other only where the path changes: what an overtaken one said is lost.
    const auto ahead = static_cast<std::int32_t>(number - selective.next_said);
    if (ahead < 0) {
      return {};
    }
    for (std::int32_t i = 0; i < ahead; ++i) {
      static_cast<void>(said_.pop());
    }
    const Statement statement = said_.pop();
    selective.next_said = number + 1;
    const bool was_recovering = selective.sender.is_recovering();
    const std::int64_t newly =
        is_nak ? selective.sender.on_nack(selective.settings, statement.expected,
                                          statement.received, time)
               : selective.sender.on_ack(selective.settings, statement.expected, time);
    source_.acked += static_cast<Psn>(newly);
    heard.next = source_.acked;
    heard.number = statement.received;
    heard.is_loss = selective.sender.is_recovering() && !was_recovering;
  }
  while (!source_.spans.empty() && end_of(source_.spans.front()) <= source_.acked) {
    static_cast<void>(source_.spans.pop());
    --source_.posted;
  }
  return heard;
}

void ReliableConnection::on_timeout() {
  ++source_.timeouts;
  if (auto* const rules = std::get_if<GoBackNSource>(&source_.rules)) {
    static_cast<void>(rules->sender.on_timeout(rules->settings));
  } else {
    auto& selective = std::get<SelectiveSource>(source_.rules);
    static_cast<void>(selective.sender.on_timeout(selective.settings));
  }
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

ReliableConnection::Answer ReliableConnection::on_packet(std::uint32_t lower, bool ends_message,
                                                         int packets_per_ack) {
  if (auto* const receiver = std::get_if<GoBackNReceiver>(&target_.rules)) {
    const Psn number = whole_number(lower, receiver->expected());
    const Receipt receipt = receiver->on_packet(number, ends_message, packets_per_ack);
    return {.is_new = receipt.is_new,
            .is_sent = receipt.reply != Receipt::Reply::None,
            .is_nak = receipt.reply == Receipt::Reply::Nak,
            .number = static_cast<std::uint32_t>(receipt.expected)};
  }
  auto& receiver = std::get<SelectiveReceiver>(target_.rules);
  const Psn number = whole_number(lower, receiver.expected());
  const SelectiveReceiver::Answer answer = receiver.on_packet(number);
  said_.push({.expected = answer.expected, .received = number});
  return {.is_new = answer.is_new,
          .is_sent = true,
          .is_nak = answer.is_nack,
          .number = target_.next_said++};
}

std::uint32_t ReliableConnection::take_completed() {
  const Psn expected =
      std::visit([](const auto& receiver) { return receiver.expected(); }, target_.rules);
  std::uint32_t count = 0;
  while (!target_.ends.empty() && target_.ends.front() <= expected) {
    static_cast<void>(target_.ends.pop());
    ++count;
  }
  return count;
}

std::uint64_t ReliableConnection::resent() const {
  return static_cast<std::uint64_t>(
      std::visit([](const auto& rules) { return rules.sender.resent(); }, source_.rules));
}

void check_retransmission(const PacketOptions& options) {
  const bool is_repeat = options.retransmission == Retransmission::SelectiveRepeat;
  const SimTime least =
      is_repeat ? std::min(options.selective.short_timeout, options.selective.long_timeout)
                : options.retry.timeout;
  if (options.retransmission != Retransmission::None && least <= SimTime()) {
    throw ConfigError(
        "packet engine: expected a retransmission timeout of more than 0, found less");
  }
}

// From here on: what the ends of the engine's connections do with it.

// Returns the settings of selective repeat on this path. Where packets overtake each other as many
// of them may be under way once more as the path holds, and so many may come before one counts as
// lost.
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
    settings.window = (is_spread ? 2 : 1) * ((round_trip + packet - 1) / packet);
  }
  settings.window = std::min(settings.window, kMostOutstanding);
  settings.reorder = is_spread ? std::max<std::int64_t>(1, settings.window / 2) : 0;
  return settings;
}

// Adds both ends; returns how long a window may be, so that no timeout is shorter.
Picoseconds PacketSenders::add_reliable(const PacketPath& path, std::uint64_t rate) {
  const PacketOptions& options = fabric_.options();
  const bool is_repeat = options.retransmission == Retransmission::SelectiveRepeat;
  const bool is_spread =
      is_repeat && fabric_.chooses() && options.adaptive->unit == AdaptiveOptions::Unit::Packet;
  reliable_.emplace_back(options,
                         is_repeat ? selective_for(path, rate, is_spread) : SelectiveSettings{});
  timers_.push_back(kNeverTime);
  return (is_repeat ? std::min(options.selective.short_timeout, options.selective.long_timeout)
                    : options.retry.timeout)
      .picoseconds();
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
  const ReliableConnection::Answer said = both.on_packet(
      packet.sequence, packet.has(Packet::kEndsMessage), static_cast<int>(packets_per_ack_));
  for (std::uint32_t left = both.take_completed(); left > 0; --left) {
    complete(end, time, notes);
  }
  const bool is_repeat = fabric_.options().retransmission == Retransmission::SelectiveRepeat;
  notes.counts.reordered += is_repeat && end.spray != kNoIndex && said.is_nak ? 1 : 0;
  if (!grants_.empty() && said.is_new) {
    grants_.on_received(packet.connection, packet.wire, time);
  }
  answer_mark(end, packet, time, answers, notes);
  if (said.is_sent) {
    const PacketPath back = way_back(end, packet.connection, time);
    ++notes.counts.acks;
    answers.add(
        {.connection = packet.connection,
         .position = back.reverse,
         .sequence = said.number,
         .wire = static_cast<std::uint16_t>(fabric_.sizes().ack),
         .left = back.hops,
         .flags = static_cast<std::uint8_t>(Packet::kControl | (packet.flags & Packet::kMarked) |
                                            (said.is_nak ? Packet::kNak : 0))});
  }
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
                            .time = time});
      if (heard.is_loss) {
        control_->on_loss(id, time);
      }
    }
  } else if (packet.sequence == static_cast<std::uint32_t>(Alarm::Kind::Post)) {
    both.post_due(time);
  } else if (timers_[id] == time) {
    timers_[id] = kNeverTime;
    if (both.deadline() <= time) {
      both.on_timeout();
      if (control_) {
        control_->on_timeout(id, time);
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
