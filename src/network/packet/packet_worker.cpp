// SPDX-License-Identifier: Apache-2.0
// Setting up, and what is no data; packet_window.cpp has the work of a window.
#include "network/packet/packet_worker.h"

#include <algorithm>
#include <iterator>

#include "sim/check.h"
#include "sim/random.h"

namespace trainyard {

PacketWorker::PacketWorker(PacketFabric& fabric, PacketSenders& senders, PacketTargets& targets,
                           PacketWatch& watch, std::uint32_t part)
    : fabric_(fabric),
      senders_(senders),
      targets_(targets),
      watch_(watch),
      options_(fabric.options()),
      sizes_(fabric.sizes()),
      hears_acks_(senders.hears_acks()),
      part_(part),
      is_cut_(fabric.parts() > 1) {
  for (Outbox& outbox : outboxes_) {
    outbox.to.resize(fabric.parts());
  }
}

void PacketWorker::look_up() {
  ports_ = fabric_.ports();
  positions_ = fabric_.positions();
  entries_ = fabric_.entries();
  loads_ = fabric_.loads();
  switches_ = fabric_.switches();
  credits_ = fabric_.credits();
  lanes_ = fabric_.lanes();
  chooses_ = !fabric_.fans().empty();
}

void PacketWorker::start_over(Picoseconds window, Picoseconds begin) {
  window_ = window;
  begin_time_ = begin;
  number_ = static_cast<std::uint64_t>(begin / window);
  border_ = static_cast<Picoseconds>(number_ + 1) * window;
  end_time_ = border_;
  calendar_.reset(number_);
  for (std::uint32_t index = 0; index < ports_.size(); ++index) {
    if (ports_[index].part == part_) {
      add_port(ports_[index], index, begin_time_);
    }
  }
  const std::vector<Due> under_way = arrivals_.items();
  arrivals_.reset(number_);
  for (const Due& due : under_way) {
    arrivals_.add(window_of(due.time), due);
  }
}

// Everything before `begin` has been done.
void PacketWorker::add_port(Port& port, std::uint32_t index, Picoseconds begin) {
  port.due = kNeverWindow;
  port.visited = kNeverWindow;
  if (port.grants != kNoIndex) {
    targets_.grants().noted(port.grants) = kNeverTime;
  }
  schedule(port, index);
  if (port.leaving.bytes > 0 && port.leaving.time >= begin) {
    add_port_to_calendar(port, index, port.leaving.time);
  }
  if (port.credits != kNoIndex) {
    for (const LinkCredits::Return& back : credits_[port.credits].returns) {
      add_port_to_calendar(port, index, back.time);
    }
  }
}

void PacketWorker::begin_at(Picoseconds window, std::uint64_t number) {
  look_up();
  window_ = window;
  number_ = number;
  begin_time_ = static_cast<Picoseconds>(number) * window;
  border_ = begin_time_ + window;
  end_time_ = border_;
  calendar_.reset(number);
  arrivals_.reset(number);
}

// Packets on links of one part come before those from other parts: they were sent earlier.
void PacketWorker::absorb(Workers others, std::span<const std::uint32_t> ports, Picoseconds begin) {
  for (const Due& due : others[part_]->arrivals_.items()) {
    arrivals_.add(window_of(due.time), due);
  }
  for (const auto& other : others) {
    for (const Due& due : other->outboxes_[other->filled_].to[part_]) {
      arrivals_.add(window_of(due.time), due);
    }
  }
  for (const std::uint32_t index : ports) {
    if (ports_[index].part == part_) {
      add_port(ports_[index], index, begin);
    }
  }
}

void PacketWorker::list_under_way(const Meant& is_meant, std::vector<Due>& all) const {
  const auto add = [&](const std::vector<Due>& some) {
    std::ranges::copy_if(some, std::back_inserter(all),
                         [&](const Due& due) { return is_meant(port_of(due)); });
  };
  add(arrivals_.items());
  for (const std::vector<Due>& crossings : outboxes_[filled_].to) {
    add(crossings);
  }
}

void PacketWorker::take_out(const Meant& is_meant) {
  const auto is_due = [&](const Due& due) { return is_meant(port_of(due)); };
  calendar_.erase_if(is_meant);
  arrivals_.erase_if(is_due);
  Outbox& outbox = outboxes_[filled_];
  outbox.earliest = kNeverTime;
  for (std::vector<Due>& crossings : outbox.to) {
    std::erase_if(crossings, is_due);
    for (const Due& due : crossings) {
      outbox.earliest = std::min(outbox.earliest, due.time);
    }
  }
}

void PacketWorker::cross(std::uint32_t part, const Due& due) {
  Outbox& outbox = outboxes_[filled_];
  outbox.to[part].push_back(due);
  outbox.earliest = std::min(outbox.earliest, due.time);
}

void PacketWorker::begin_round(std::uint64_t round) {
  filled_ = static_cast<std::uint32_t>(round % 2);
  Outbox& outbox = outboxes_[filled_];
  outbox.earliest = kNeverTime;
  for (std::vector<Due>& crossings : outbox.to) {
    crossings.clear();
  }
}

void PacketWorker::put_crossings(std::uint32_t part, std::span<const Due> dues) {
  std::vector<Due>& crossings = outboxes_[filled_].to[part];
  crossings.insert(crossings.end(), dues.begin(), dues.end());
}

// Stores what goes out on the link of `port` and is due in another part, or in a window that is far
// away.
void PacketWorker::put_afar(const Port& port, const Due& due) {
  if (port.into != kNoIndex) {
    cross(port.into, due);
  } else {
    arrivals_.add(window_of(due.time), due);
  }
}

std::size_t PacketWorker::due(std::uint64_t number) const {
  std::size_t items = calendar_.due(number) + arrivals_.due(number);
  for (const std::vector<Due>& crossings : outboxes_[filled_].to) {
    items += crossings.size();
  }
  return items;
}

void PacketWorker::schedule(Port& port, std::uint32_t index) {
  const Picoseconds start = next_start(port);
  if (start != kNeverTime) {
    add_port_to_calendar(port, index, start);
  }
  if ((port.stops & Port::kGrants) != 0) [[unlikely]] {
    schedule_grants(port, index);
  }
}

// Sockets hand the queue what they may. Returns whether its first packet begins now.
bool PacketWorker::fill(Port& port, std::uint32_t index, Picoseconds now) {
  while (has_own(port.source, now)) {
    if (const auto packet = senders_.take(port.source, now, notes_)) {
      enqueue(port, index, *packet, now);
      senders_.enter_queue(packet->connection);
      senders_.go_on(port, *packet, now, notes_);
    }
  }
  if (port.queue.empty() || port.free_at > now) {
    return false;
  }
  const Packet& first = port.queue.front();
  if (!first.has(Packet::kWaits) && senders_.end(first.connection).port == index) {
    senders_.leave_queue(first.connection, now);
  }
  return true;
}

// The last link is a FIFO, so what happens at its end at `time` is known when the packet begins to
// leave on it.
void PacketWorker::deliver(const Port& port, Packet packet, Picoseconds time) {
  DCHECK(time >= end_time_, "a packet ends in the window in which it was sent");
  if ((port.stops & Port::kGrants) != 0) [[unlikely]] {
    deliver_credited(port, packet, time);
    return;
  }
  if (packet.has(Packet::kControl) && !packet.is_trimmed()) {
    if (packet.has(Packet::kCnp) || hears_acks_) {
      notify(port, packet, time);
    }
    return;
  }
  if (packet.has(Packet::kWaits)) [[unlikely]] {
    packet.flags ^= Packet::kWaits | Packet::kControl;
    notify(port, packet, time);
    return;
  }
  const PacketAnswers answers = targets_.take(packet, time, notes_);
  for (std::uint32_t i = 0; i < answers.count; ++i) {
    notify(port, answers.packets[i], time);
  }
}

// At `time` a control packet is at the end of the link of `port`, where it begins its way, or ends
// it: then its connection's port is told.
void PacketWorker::notify(const Port& port, Packet packet, Picoseconds time) {
  const std::uint32_t to = packet.left > 0 ? positions_[packet.position] : kNoIndex;
  put_on_link(port, DueKind::Notice, to, time, packet);
}

// Admits what is no data and reaches a port: a PFC frame and the like, a control packet on its way,
// or one at its end.
void PacketWorker::admit_special(Port& port, std::uint32_t index, const Due& due,
                                 PacketSwitch* node) {
  const Packet& packet = due.packet;
  if (packet.has(Packet::kCredit)) {
    take_credits(port, due);
  } else if (packet.has(Packet::kPause)) {
    if (packet.has(Packet::kNak)) {
      take_in_host(port, due);
    } else if (packet.has(Packet::kAlarm)) {
      CHECK(node != nullptr, "a port is polled whose switch does not count");
      poll_guard(port, index, due.time, *node);
    } else {
      admit_pause(port, index, due);
    }
  } else if (packet.has(Packet::kAlarm) &&
             packet.sequence == static_cast<std::uint32_t>(Alarm::Kind::Delay)) {
    if (const auto ack = targets_.on_delay(packet.connection, due.time, index, notes_)) {
      notify(port, *ack, due.time + fabric_.reach(port));
    }
  } else if (packet.left > 0) {
    port.control.push(packet);
    ++port.urgent;
  } else if (const auto request = senders_.on_notice(packet, due.time, notes_)) {
    port.control.push(*request);
    ++port.urgent;
  }
}

// Marks a packet with so many bytes behind it in its queue: more than Kmin.
void PacketWorker::mark(Port& port, Packet& packet, std::int64_t behind) {
  if (packet.has(Packet::kMarked | Packet::kWaits)) {
    return;  // ACKs of TCP are not marked (RFC 3168, section 6.1.4).
  }
  if (watch_.notes_disturbed) [[unlikely]] {
    notes_.disturbed.push_back(static_cast<std::uint32_t>(&port - ports_.data()));
  }
  port.random += 0x9E3779B97F4A7C15;  // The step of splitmix64.
  const auto draw = static_cast<std::uint32_t>(mix64(port.random) >> 32);
  if (fabric_.marker(port.marker).marks(Bytes(behind), draw)) {
    packet.flags |= Packet::kMarked;
    ++port.counters.marks;
  }
}

// A PFC frame takes effect, or the link of the port has failed.
void PacketWorker::admit_pause(Port& port, std::uint32_t index, const Due& due) {
  bool stop = due.packet.has(Packet::kMarked);
  const bool was_paused = (port.stops & Port::kPaused) != 0;
  port.counters.pauses_received += stop ? 1 : 0;
  if (port.lanes != kNoIndex) {
    LaneQueues& queues = lanes_[port.lanes];
    const bool is_for_all = due.packet.sequence == LaneOptions::kLanes;
    const unsigned bits = is_for_all ? options_.lanes->lossless : 1U << due.packet.sequence;
    queues.paused = static_cast<std::uint8_t>(stop ? queues.paused | bits : queues.paused & ~bits);
    stop = queues.paused != 0;
  }
  if (stop == was_paused) {
    return;
  }
  if (stop) {
    port.paused_since = due.time;
    port.stops |= Port::kPaused;
  } else {
    port.counters.paused_time += due.time - port.paused_since;
    port.stops &= static_cast<std::uint8_t>(~Port::kPaused);
  }
  if (port.guard != kNoIndex) [[unlikely]] {
    fabric_.guards()[port.guard].on_change(due.time, was_paused, port.paused_since,
                                           port.counters.packets);
    arm_guard(port, index, due.time);
  }
}

}  // namespace trainyard
