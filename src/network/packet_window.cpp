// SPDX-License-Identifier: Apache-2.0
// The work of a window of the packet engine, port by port.
#include <algorithm>

#include "network/packet_worker.h"
#include "sim/check.h"
#include "sim/random.h"

namespace trainyard {
namespace {

// Ports are fetched from memory while this many before them are worked on.
constexpr std::size_t kAhead = 4;

}  // namespace

WindowCalendar::Window PacketWorker::next_window() const {
  WindowCalendar::Window next = calendar_.next();
  const auto consider = [&](Picoseconds time) {
    if (time != kNeverTime) {
      next = std::min(next, static_cast<WindowCalendar::Window>(time / window_));
    }
  };
  consider(notes_.alarms.empty() ? kNeverTime : notes_.alarms.top().time);
  if (is_cut_) {
    next = std::min(next, inlet_calendar_.next());
    consider(outboxes_[filled_].earliest);
  }
  return next;
}

void PacketWorker::run(WindowCalendar::Window number, Workers workers, std::uint64_t round) {
  number_ = number;
  calendar_.take(number_, due_);
  if (is_cut_) {
    inlet_calendar_.take(number_, due_inlets_);
  }
  begin_time_ = static_cast<Picoseconds>(number_) * window_;
  end_time_ = begin_time_ + window_;
  active_.clear();
  busy_.clear();
  gets_used_ = 0;
  for (std::size_t i = 0; i < due_.size(); ++i) {
    fetch_ahead(i);
    pull(due_[i]);
  }
  if (is_cut_) {
    pull_inlets();
    take_in(workers, round);
  }
  if (!notes_.alarms.empty()) {
    pull_alarms();
  }
  run_ports();
  for (const std::uint32_t node : busy_) {
    run_switch(node);
  }
  begin_time_ = end_time_;
  senders_.settle(notes_);
}

// Those of switches that are not open are left to run_switch().
void PacketWorker::run_ports() {
  for (std::size_t i = 0; i < active_.size(); ++i) {
    if (i + kAhead < active_.size()) {
      const Port& later = ports_[active_[i + kAhead]];
      __builtin_prefetch(&later.free_at);
      __builtin_prefetch(&later.leaving);
    }
    const std::uint32_t index = active_[i];
    const std::uint32_t node = ports_[index].node;
    if (node == kNoIndex || loads_[node].is_open()) [[likely]] {
      run_port(index, nullptr);
    } else if (switches_[node].visited != number_) {
      switches_[node].visited = number_;
      if (!loads_[node].is_counted()) {
        count(node);  // Its other ports find it closed.
      }
      busy_.push_back(node);
    }
  }
}

// Fetches from memory what items further on will need: the port first, then the packet at the head
// of its link, then the port that takes that.
inline void PacketWorker::fetch_ahead(std::size_t place) const {
  if (place + 3 * kAhead < due_.size()) {
    __builtin_prefetch(&ports_[due_[place + 3 * kAhead] / 4]);
  }
  if (place + 2 * kAhead < due_.size()) {
    const Port& port = ports_[due_[place + 2 * kAhead] / 4];
    if (!port.wire.empty()) {
      __builtin_prefetch(&port.wire.front());
    }
  }
  if (place + kAhead < due_.size()) {
    const Port& port = ports_[due_[place + kAhead] / 4];
    if (!port.wire.empty()) {
      __builtin_prefetch(&ports_[positions_[port.wire.front().packet.position]]);
    }
  }
}

// Arrivals by several links are in order link by link; there are few of them in a window.
void PacketWorker::put_in_order(Port& port, std::uint32_t slot) {
  Due& due = gets_[slot];
  std::uint32_t* place = &port.first;
  while (!due.is_before(gets_[*place])) {
    place = &gets_[*place].next;
  }
  due.next = *place;
  *place = slot;
}

// To the port that takes what port `from` has sent.
inline void PacketWorker::hand(const Arrival& arrival, CalendarItem kind, std::uint32_t from,
                               std::uint32_t by) {
  const Packet& packet = arrival.packet;
  if (kind == CalendarItem::Wire) {
    const std::uint32_t next = positions_[packet.position];
    const std::uint32_t node = ports_[next].node;
    if (node != kNoIndex && !packet.has(Packet::kControl)) {
      loads_[node].held += packet.wire;
      if (chooses_ && fabric_.fans().has(packet.position)) [[unlikely]] {
        put_aside(node, arrival, by);
        return;
      }
    }
    get(next, arrival, by);
  } else if (kind == CalendarItem::Pauses) {
    get(ports_[from].opposite, arrival, by);
  } else if (kind == CalendarItem::Port) {
    get(from, arrival, by);  // Credits.
  } else {
    // A control packet that begins its way, or ends it at the port that its connection sends by.
    get(packet.left > 0 ? positions_[packet.position] : senders_.port(packet.connection), arrival,
        by);
  }
}

// What has come from other parts.
void PacketWorker::pull_inlets() {
  for (const std::uint32_t slot : due_inlets_) {
    const PacketCrossing& crossing = inlets_[slot];
    hand(crossing.arrival, crossing.kind(), crossing.port, crossing.by);
    free_inlets_.push_back(slot);
  }
}

// What was sent here from other parts in the round before.
void PacketWorker::take_in(Workers workers, std::uint64_t round) {
  const std::size_t before = (round + 1) % 2;
  for (const std::unique_ptr<PacketWorker>& worker : workers) {
    const std::vector<PacketCrossing>& crossings = worker->outboxes_[before].to[part_];
    for (std::size_t i = 0; i < crossings.size(); ++i) {
      if (i + 2 * kAhead < crossings.size()) {
        const Packet& later = crossings[i + 2 * kAhead].arrival.packet;
        if (later.left > 0) {
          __builtin_prefetch(&ports_[positions_[later.position]]);
        }
      }
      const PacketCrossing& crossing = crossings[i];
      if (crossing.arrival.time < end_time_) {
        hand(crossing.arrival, crossing.kind(), crossing.port, crossing.by);
      } else {
        keep(crossing);
      }
    }
  }
  filled_ = static_cast<std::uint32_t>(round % 2);
  Outbox& outbox = outboxes_[filled_];
  outbox.earliest = kNeverTime;
  for (std::vector<PacketCrossing>& crossings : outbox.to) {
    crossings.clear();
  }
}

// Hands what arrives in this window by one link to the ports that take it.
void PacketWorker::pull(std::uint32_t item) {
  const std::uint32_t index = item / 4;
  Port& port = ports_[index];
  const auto kind = static_cast<CalendarItem>(item % 4);
  if (kind == CalendarItem::Port) {
    port.due = port.due == number_ ? kNoWindow : port.due;
    if (port.credits != kNoIndex) [[unlikely]] {
      pull_credits(index);
    }
    if (port.visited != number_) {
      port.visited = number_;
      active_.push_back(index);
    }
    return;
  }
  const std::uint32_t by = item_of(port.link, kind);
  if (kind == CalendarItem::Wire) {
    do {
      hand(port.wire.pop(), CalendarItem::Wire, index, by);
    } while (!port.wire.empty() && port.wire.front().time < end_time_);
    if (!port.wire.empty()) {
      add_to_calendar(item, port.wire.front().time);
    }
    return;
  }
  Ring<Arrival>& ring = kind == CalendarItem::Notices ? port.notices : port.pauses;
  do {
    hand(ring.pop(), kind, index, by);
  } while (!ring.empty() && ring.front().time < end_time_);
  if (!ring.empty()) {
    add_to_calendar(item, ring.front().time);
  }
}

// Hands the alarms of this window to the ports, after all that comes by links at the same time.
void PacketWorker::pull_alarms() {
  senders_.settle(notes_);
  while (!notes_.alarms.empty() && notes_.alarms.top().time < end_time_) {
    const Alarm alarm = notes_.alarms.top();
    notes_.alarms.pop();
    Packet packet{.connection = alarm.connection,
                  .position = 0,
                  .sequence = static_cast<std::uint32_t>(alarm.kind),
                  .wire = 0,
                  .left = 0,
                  .flags = static_cast<std::uint8_t>(Packet::kControl | Packet::kAlarm)};
    if (alarm.kind == Alarm::Kind::Poll) {
      packet.flags = Packet::kPause | Packet::kAlarm;
      switches_[ports_[alarm.port].node].polled = number_;
    }
    if (alarm.kind == Alarm::Kind::LinkDown) {
      packet.flags = Packet::kPause;  // XON: nothing stops a port whose link is down.
      packet.sequence = LaneOptions::kLanes;
    }
    get(alarm.port, {.time = alarm.time, .packet = packet}, kNoIndex);
    senders_.settle(notes_);
  }
}

// A port of an open switch that has nothing but data to pass on, which is nearly all of the work:
// what run_port would do, with nothing that does not apply. False if something is left for that.
bool PacketWorker::run_plain(Port& port, std::uint32_t index) {
  while (port.first != kNoIndex) {
    const Due& due = gets_[port.first];
    if (!port.queue.empty() && port.free_at < due.time) {
      pass_on(port, index, take_queued(port), port.free_at);
      continue;
    }
    if (due.packet.has(Packet::kControl | Packet::kPause)) [[unlikely]] {
      if (!pass_on_control(port, index, due)) {
        return false;
      }
      continue;
    }
    port.first = due.next;
    const std::int64_t frame = due.packet.wire - sizes_.around_frame;
    if (port.queue.empty()) {
      port.free_at = std::max(port.free_at, due.time);
      port.counters.most_queued = std::max(port.counters.most_queued, frame);
      const bool is_alone = port.first == kNoIndex || gets_[port.first].time > port.free_at;
      if (is_alone && port.free_at < end_time_) {
        pass_on(port, index, due.packet, port.free_at);
        continue;
      }
    }
    port.queue.push(due.packet);
    port.queued_bytes += frame;
    port.counters.most_queued = std::max(port.counters.most_queued, port.queued_bytes);
  }
  while (!port.queue.empty()) {
    if (port.free_at >= end_time_) {
      // What comes later in the window is for run_port.
      if (port.first != kNoIndex) {
        return false;
      }
      add_port_to_calendar(port, index, port.free_at);
      return true;
    }
    pass_on(port, index, take_queued(port), port.free_at);
  }
  return true;
}

// A control packet that finds the port idle goes on at once. False, and nothing done, for others.
bool PacketWorker::pass_on_control(Port& port, std::uint32_t index, const Due& due) {
  const Picoseconds start = std::max(port.free_at, due.time);
  const bool is_alone = due.next == kNoIndex || gets_[due.next].time > start;
  if (!is_alone || start >= end_time_ || !port.queue.empty() || due.packet.has(Packet::kPause) ||
      due.packet.left == 0) {
    return false;
  }
  port.first = due.next;
  begin_inline(port, index, due.packet, start);
  return true;
}

inline Packet PacketWorker::take_queued(Port& port) {
  Packet packet = port.queue.pop();
  port.queued_bytes -= packet.wire - sizes_.around_frame;
  if (port.queued_bytes > port.mark_above) [[unlikely]] {
    mark(port, packet, port.queued_bytes);
  }
  return packet;
}

// Begins a packet that came by another port.
inline void PacketWorker::pass_on(Port& port, std::uint32_t index, Packet packet,
                                  Picoseconds start) {
  ++port.counters.packets;
  if (port.node != kNoIndex) {
    loads_[port.node].held -= packet.wire;
    port.leaving = {.time = start + time_on_line(port, packet.wire),
                    .position = packet.position,
                    .bytes = static_cast<std::int32_t>(packet.wire - sizes_.around_frame)};
  }
  begin_inline(port, index, packet, start);
}

// `node` is the switch that counts what the port stores, if one does.
void PacketWorker::run_port(std::uint32_t index, PacketSwitch* node) {
  Port& port = ports_[index];
  const bool is_plain = node == nullptr && port.source == kNoIndex && port.urgent == 0 &&
                        port.stops == 0 && port.credits == kNoIndex && watch_.queue_times.empty();
  if (is_plain) [[likely]] {
    if (run_plain(port, index)) {
      return;
    }
  }
  std::uint32_t next = port.first;
  port.first = kNoIndex;
  while (true) {
    const Picoseconds start = next_start(port);
    if (next != kNoIndex && gets_[next].time <= start) {
      admit(port, index, gets_[next], node);
      next = gets_[next].next;
      continue;
    }
    if (start >= end_time_) {
      break;
    }
    send_next(port, index, start, node);
  }
  if (node != nullptr && port.leaving.bytes > 0 && port.leaving.time < end_time_) {
    release(port, *node);
  }
  if ((port.stops & Port::kGrants) != 0) [[unlikely]] {
    finish_grants(port, index);
  }
  schedule(port, index);
}

void PacketWorker::admit(Port& port, std::uint32_t index, const Due& due, PacketSwitch* node) {
  port.free_at = std::max(port.free_at, due.time);
  const Packet& packet = due.packet;
  if (packet.has(Packet::kControl | Packet::kPause)) [[unlikely]] {
    admit_special(port, index, due, node);
    return;
  }
  if (node != nullptr) {
    store(port, index, due, *node);
  } else {
    enqueue(port, index, packet, due.time);
  }
  if (port.guard != kNoIndex && (port.stops & Port::kPaused) != 0) [[unlikely]] {
    arm_guard(port, index, due.time);
  }
}

void PacketWorker::enqueue(Port& port, std::uint32_t index, const Packet& packet,
                           Picoseconds time) {
  if (port.lanes == kNoIndex) [[likely]] {
    port.queue.push(packet);
  } else {
    put_in_lane(port, packet);
  }
  port.queued_bytes += packet.wire - sizes_.around_frame;
  note_queue(port, index, time);
  port.counters.most_queued = std::max(port.counters.most_queued, port.queued_bytes);
}

// Whether one of the connections that begin at the port may send.
bool PacketWorker::has_own(std::uint32_t source, Picoseconds start) {
  return source != kNoIndex && senders_.earliest(source) <= start &&
         senders_.has_turn(source, start);
}

// Begins the packet of the connection whose turn it is. Nothing if it has none after all.
std::optional<Packet> PacketWorker::send_own(Port& port, std::uint32_t index, std::uint32_t source,
                                             Picoseconds start) {
  const std::optional<Packet> packet = senders_.take(source, start, notes_);
  if (packet) {
    ++port.counters.packets;
    begin(port, index, *packet, start);
    senders_.go_on(port, *packet, start, notes_);
  }
  return packet;
}

// Begins the packet whose turn it is. There is one, unless a window has no room for it.
void PacketWorker::send_next(Port& port, std::uint32_t index, Picoseconds start,
                             PacketSwitch* node) {
  if (node != nullptr && port.leaving.bytes > 0) {
    release(port, *node);
  }
  if ((port.stops & Port::kHost) != 0) [[unlikely]] {
    let_go_on(port, start);
  }
  if (port.urgent > 0) [[unlikely]] {
    --port.urgent;
    if (port.to_pause.empty()) {
      begin(port, index, port.control.pop(), start);
    } else {
      send_pause(port, index, start);
    }
    return;
  }
  if (port.lanes != kNoIndex) [[unlikely]] {
    send_of_lane(port, index, start);
    return;
  }
  if (has_own(port.source, start)) {
    if (port.own_turn || port.queue.empty()) {
      port.own_turn = false;
      static_cast<void>(send_own(port, index, port.source, start));
      return;
    }
  } else if (port.queue.empty()) {
    return;
  }
  port.own_turn = true;
  const Packet packet = take_queued(port);
  note_queue(port, index, start);
  pass_on(port, index, packet, start);
}

// So many bytes are behind the packet in its queue: more than Kmin.
void PacketWorker::mark(Port& port, Packet& packet, std::int64_t behind) {
  if (packet.has(Packet::kMarked)) {
    return;
  }
  port.random += 0x9E3779B97F4A7C15;  // The step of splitmix64.
  const auto draw = static_cast<std::uint32_t>(mix64(port.random) >> 32);
  if (fabric_.marker(port.marker).marks(Bytes(behind), draw)) {
    packet.flags |= Packet::kMarked;
    ++port.counters.marks;
  }
}

// The port sends the packet from `start` on.
void PacketWorker::begin(Port& port, std::uint32_t index, const Packet& packet, Picoseconds start) {
  begin_inline(port, index, packet, start);
}

inline void PacketWorker::begin_inline(Port& port, std::uint32_t index, Packet packet,
                                       Picoseconds start) {
  if (watch_.is_on) [[unlikely]] {
    if (!observe(port, index, packet, start)) {
      return;
    }
  }
  const Picoseconds end = start + time_on_line(port, packet.wire);
  port.free_at = end;
  port.counters.bytes += packet.wire;
  if (!credits_.empty()) [[unlikely]] {
    use_credits(port, index, packet, end, false);
  }
  packet = packet.advanced();
  if (packet.left == 0) {
    deliver(port, index, packet, end + port.end_delay);
    return;
  }
  const Picoseconds time = fabric_.handed_on(port, packet, start, end);
  DCHECK(time >= end_time_, "a packet arrives in the window in which it was sent");
  put_on_link(port, index, CalendarItem::Wire, port.wire, time, packet);
}

}  // namespace trainyard
