// SPDX-License-Identifier: Apache-2.0
#include "network/packet_parts/packet_grants.h"

#include <algorithm>
#include <variant>

#include "network/packet/packet_worker.h"
#include "sim/check.h"

namespace trainyard {
namespace {

// A request that nothing answers is repeated as often as a packet: NCCL_IB_RETRY_CNT.
constexpr int kMaxTries = 7;

// A request, to the target; without this flag the same is a grant, to the source.
bool is_request(const Packet& packet) {
  return packet.has(Packet::kCnp) && packet.has(Packet::kEndsMessage);
}

}  // namespace

void PacketGrants::add(Port& last, const CreditSettings& settings) {
  const auto id = static_cast<std::uint32_t>(sources_.size());
  if (last.grants == kNoIndex) {
    last.grants = static_cast<std::uint32_t>(pacers_.size());
    last.stops |= Port::kGrants;
    pacers_.push_back(std::make_unique<Pacer>(settings));
  }
  Pacer& pacer = *pacers_[last.grants];
  sources_.push_back({.posted = {}, .patience = settings.patience});
  targets_.push_back({.pacer = last.grants,
                      .flow = static_cast<std::uint32_t>(pacer.connections.size()),
                      .window = settings.window});
  pacer.connections.push_back(id);
  requests_.emplace_back();
}

std::int64_t PacketGrants::take_posted(std::uint32_t id, Picoseconds now) {
  Ring<Posted>& posted = sources_[id].posted;
  std::int64_t wire = 0;
  while (!posted.empty() && posted.front().time <= now) {
    wire += posted.pop().wire;
  }
  return wire;
}

std::uint32_t PacketGrants::ask(std::uint32_t id, const CreditSender& sender, Picoseconds now,
                                bool is_again) {
  Source& source = sources_[id];
  source.said = sender.asked();
  source.heard_at = std::max(source.heard_at, now);
  requests_[id].push({.unasked = sender.unasked(), .asked = sender.asked(), .is_again = is_again});
  return source.requests++;
}

std::int64_t PacketGrants::take_grant(std::uint32_t id, std::uint32_t sum,
                                      const CreditSender& sender, Picoseconds now) {
  Source& source = sources_[id];
  source.heard_at = now;
  source.tries = 0;
  const auto more = static_cast<std::int32_t>(sum - static_cast<std::uint32_t>(sender.granted()));
  return std::max(0, more);  // Less if it was overtaken.
}

Picoseconds PacketGrants::deadline(std::uint32_t id, const CreditSender& sender) const {
  const Source& source = sources_[id];
  if (source.has_given_up || !sender.is_waiting()) {
    return kNeverTime;
  }
  return source.heard_at + (source.patience * (std::int64_t{1} << source.tries)).picoseconds();
}

bool PacketGrants::retry(std::uint32_t id) {
  Source& source = sources_[id];
  if (source.tries == kMaxTries) {
    source.has_given_up = true;
    return false;
  }
  ++source.tries;
  return true;
}

// The pacer hears something of the connection, at the time up to which it was advanced. A full one
// may grant at once when its window grows: if it grew when connections are added, that would be in
// windows that are over.
CreditPacer& PacketGrants::hear(const Target& target) {
  Pacer& pacer = *pacers_[target.pacer];
  pacer.settings.window = std::max(pacer.settings.window, target.window);
  return pacer.credit;
}

bool PacketGrants::take_request(std::uint32_t id, std::uint32_t number, Picoseconds time) {
  Target& target = targets_[id];
  if (static_cast<std::int32_t>(number - target.heard) < 0) {
    return false;  // It was overtaken, by another path.
  }
  CreditRequest request = requests_[id].pop();
  for (; target.heard != number; ++target.heard) {
    request = requests_[id].pop();
  }
  ++target.heard;
  CreditPacer& pacer = hear(target);
  pacer.expect(target.flow, Bytes(static_cast<std::int64_t>(request.unasked - target.unasked)),
               SimTime(time));
  pacer.request(target.flow, Bytes(static_cast<std::int64_t>(request.asked - target.asked)));
  target.unasked = request.unasked;
  target.asked = request.asked;
  return request.is_again;
}

void PacketGrants::on_received(std::uint32_t id, std::int64_t wire, Picoseconds time) {
  const Target& target = targets_[id];
  hear(target).on_received(target.flow, Bytes(wire), SimTime(time));
}

Picoseconds PacketGrants::deadline(std::uint32_t number) const {
  const Pacer& pacer = *pacers_[number];
  const Picoseconds time = pacer.credit.deadline().picoseconds();
  return time == kNeverTime ? time : std::max(time, pacer.now);
}

std::optional<std::uint32_t> PacketGrants::grant(std::uint32_t number, Picoseconds time) {
  Pacer& pacer = *pacers_[number];
  const std::optional<CreditPacer::Grant> grant = pacer.credit.grant(SimTime(time));
  if (!grant) {
    return std::nullopt;
  }
  const std::uint32_t id = pacer.connections[grant->flow];
  targets_[id].granted += static_cast<std::uint64_t>(grant->size.count());
  return id;
}

// From here on: what the ends of the engine's connections do with it.

// The pacer grants what the target's stage of the path carries, its slowest link from the last one
// of the fabric on. The time in which a sender asks again.
Picoseconds PacketSenders::add_credits(const PacketPath& path, Picoseconds rtt) {
  const Topology& topology = fabric_.topology();
  const auto port_at = [&](std::uint32_t hop) -> Port& {
    return fabric_.ports()[fabric_.positions()[path.first + hop]];
  };
  std::uint64_t rate = port_at(path.hops - 1U).bits_per_second;
  for (std::uint32_t hop = path.hops; hop-- > 0;) {
    rate = std::min(rate, port_at(hop).bits_per_second);
    if (topology.link(LinkId(port_at(hop).link)).spec.kind == LinkKind::Network) {
      break;
    }
  }
  const ControlSettings settings =
      control_->profile().settings({.line = Bandwidth(static_cast<std::int64_t>(rate)),
                                    .base_rtt = SimTime(rtt),
                                    .packet = Bytes(fabric_.sizes().full)});
  const auto& credits = std::get<CreditSettings>(settings.rules);
  grants_.add(port_at(path.hops - 1U), credits);
  return credits.patience.picoseconds();
}

const CreditSender& PacketSenders::credit_of(std::uint32_t id) const {
  return *control_->control(id).as<CreditSender>();
}

// All bytes on the line of a message.
std::int64_t PacketSenders::wire_of_message(std::int64_t size) const {
  const std::int64_t first = std::min(size, mtu_);
  const std::int64_t rest = size - first;
  const std::int64_t last = rest % mtu_;
  return fabric_.wire_of(first, true) + rest / mtu_ * fabric_.sizes().full +
         (last > 0 ? fabric_.wire_of(last, false) : 0);
}

Packet PacketSenders::request(std::uint32_t id, Picoseconds time, bool is_again) {
  const SendingEnd& end = ends_[id];
  PacketPath path{.first = end.path, .hops = end.hops};
  if (const auto* const change = fabric_.routes().at(id, time)) [[unlikely]] {
    path = change->path;
  }
  return {.connection = id,
          .position = path.first,
          .sequence = grants_.ask(id, credit_of(id), time, is_again),
          .wire = static_cast<std::uint16_t>(fabric_.sizes().ack),
          .left = path.hops,
          .flags = Packet::kControl | Packet::kCnp | Packet::kEndsMessage};
}

// A message was sent, or the time has come at which a request is repeated.
std::optional<Packet> PacketSenders::on_credit_alarm(std::uint32_t id, Alarm::Kind kind,
                                                     Picoseconds time, PacketNotes& notes) {
  std::optional<Packet> packet;
  if (kind == Alarm::Kind::Post) {
    if (const std::int64_t wire = grants_.take_posted(id, time); wire > 0) {
      control_->control(id).add(Bytes(wire), Bytes(control_->in_flight(id)));
    }
    if (grants_.must_ask(id, credit_of(id))) {
      packet = request(id, time, false);
    }
  } else if (grants_.timer(id) == time) {
    grants_.timer(id) = kNeverTime;
    if (grants_.deadline(id, credit_of(id)) <= time) {
      if (grants_.retry(id)) {
        packet = request(id, time, true);
      } else if (reliable_.empty() || !reliable_[id].has_failed()) {
        notes.failures.push_back({.time = time, .connection = id});
      }
    }
  }
  set_ask_timer(id, notes);
  if (packet && fabric_.is_port_elsewhere(target_port(id))) [[unlikely]] {
    notes.requests.push_back({.connection = id, .request = grants_.take_asked(id)});
  }
  return packet;
}

void PacketSenders::on_grant(const Packet& packet, Picoseconds time) {
  const std::uint32_t id = packet.connection;
  const std::int64_t bytes = grants_.take_grant(id, packet.sequence, credit_of(id), time);
  control_->control(id).on_credit(Bytes(bytes));
  resume(id, time);
}

// Sets the timer as set_timer() does.
void PacketSenders::set_ask_timer(std::uint32_t id, PacketNotes& notes) {
  const Picoseconds deadline = grants_.deadline(id, credit_of(id));
  if (deadline < grants_.timer(id)) {
    grants_.timer(id) = deadline;
    notes.alarms.push(
        {.time = deadline, .port = ends_[id].port, .connection = id, .kind = Alarm::Kind::Ask});
  }
}

Packet PacketTargets::grant_packet(std::uint32_t id, Picoseconds time) const {
  return on_way_back(ends_[id], id, time,
                     {.sequence = grants_.granted(id),
                      .wire = static_cast<std::uint16_t>(fabric_.sizes().ack),
                      .flags = Packet::kCnp});
}

// Something is at the end of a link with a pacer.
void PacketWorker::deliver_credited(const Port& port, const Packet& packet, Picoseconds time) {
  PacketGrants& grants = targets_.grants();
  grant_until(port, time);
  grants.advance(port.grants, time);
  if (!packet.has(Packet::kControl)) {
    const PacketAnswers answers = targets_.take(packet, time, notes_);
    for (std::uint32_t i = 0; i < answers.count; ++i) {
      notify(port, answers.packets[i], time);
    }
  } else if (!is_request(packet)) {
    notify(port, packet, time);
  } else if (grants.take_request(packet.connection, packet.sequence, time)) {
    notify(port, targets_.grant_packet(packet.connection, time), time);
  }
  grant_until(port, time);
}

// Makes the grants that are due up to `time`.
void PacketWorker::grant_until(const Port& port, Picoseconds time) {
  PacketGrants& grants = targets_.grants();
  for (Picoseconds due = grants.deadline(port.grants); due <= time;
       due = grants.deadline(port.grants)) {
    CHECK(due >= end_time_, "a grant of a window that has begun");
    if (const auto id = grants.grant(port.grants, due)) {
      notify(port, targets_.grant_packet(*id, due), due);
    }
  }
}

// The work of the port in this window is done: what comes to the end of its link in the next one is
// known.
void PacketWorker::finish_grants(const Port& port) {
  Picoseconds& noted = targets_.grants().noted(port.grants);
  if (noted < end_time_) {
    noted = kNeverTime;
  }
  grant_until(port, end_time_ + window_ - 1);
}

// Puts the port into the calendar for the window before that of the next grant.
void PacketWorker::schedule_grants(Port& port, std::uint32_t index) {
  PacketGrants& grants = targets_.grants();
  const Picoseconds due = grants.deadline(port.grants);
  if (due == kNeverTime) {
    return;
  }
  const Picoseconds time = std::max(due - window_, begin_time_);
  if (time < grants.noted(port.grants)) {
    grants.noted(port.grants) = time;
    calendar_.add(window_of(time), index);
  }
}

}  // namespace trainyard
