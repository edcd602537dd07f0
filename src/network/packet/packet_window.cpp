// SPDX-License-Identifier: Apache-2.0
// The work of a window of the packet engine, port by port.
#include <algorithm>

#include "network/packet/packet_worker.h"
#include "sim/check.h"

namespace trainyard {
namespace {

// Ports are fetched from memory while this many before them are worked on.
constexpr std::size_t kAhead = 8;

}  // namespace

std::uint64_t PacketWorker::next_window() const {
  const std::uint64_t next = std::min(calendar_.next(), arrivals_.next());
  Picoseconds time = notes_.alarms.empty() ? kNeverTime : notes_.alarms.top().time;
  if (is_cut_) {
    time = std::min(time, outboxes_[filled_].earliest);
  }
  return time == kNeverTime ? next : std::min(next, static_cast<std::uint64_t>(time / window_));
}

void PacketWorker::run(std::uint64_t number, Workers workers, std::uint64_t round,
                       Picoseconds until) {
  number_ = number;
  calendar_.take(number_, due_);
  arrivals_.take(number_, gets_);
  const Picoseconds begin = static_cast<Picoseconds>(number_) * window_;
  begin_time_ = std::max(begin, begin_time_);  // If it goes on with a window.
  border_ = begin + window_;
  end_time_ = std::min(until, border_);
  active_.clear();
  busy_.clear();
  if (end_time_ < border_) [[unlikely]] {
    leave_for_later();
  }
  hand_out();
  if (is_cut_) {
    take_in(workers, round);
  }
  for (const std::uint32_t index : due_) {
    wake(index);
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
  if (end_time_ < border_) [[unlikely]] {
    for (const std::uint32_t index : active_) {
      ports_[index].visited = kNeverWindow;
    }
    for (const std::uint32_t node : busy_) {
      switches_[node].visited = kNeverWindow;
    }
  }
}

// Puts down again whatever is due in this window, but not before its end for now.
void PacketWorker::leave_for_later() {
  const auto later = std::stable_partition(gets_.begin(), gets_.end(),
                                           [&](const Due& due) { return due.time < end_time_; });
  for (auto due = later; due != gets_.end(); ++due) {
    arrivals_.add(number_, *due);
  }
  gets_.erase(later, gets_.end());
}

// Runs ports; those of switches that are not open are left to run_switch().
void PacketWorker::run_ports() {
  for (std::size_t i = 0; i < active_.size(); ++i) {
    if (i + kAhead < active_.size()) {
      const Port& later = ports_[active_[i + kAhead]];
      __builtin_prefetch(&later);
      __builtin_prefetch(&later.full_time);
      __builtin_prefetch(&later.leaving);
    }
    if (i + kAhead / 2 < active_.size()) {
      const Port& later = ports_[active_[i + kAhead / 2]];
      if (!later.queue.empty()) {
        __builtin_prefetch(&later.queue.front());
      }
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

// Hands to ports what links of this part bring.
void PacketWorker::hand_out() {
  const auto count = static_cast<std::uint32_t>(gets_.size());
  for (std::uint32_t slot = 0; slot < count; ++slot) {
    if (slot + kAhead < count) {
      const std::uint32_t later = gets_[slot + kAhead].next;
      __builtin_prefetch(&ports_[later == kNoIndex ? 0 : later]);
    }
    hand(slot);
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

// Hands it to the port that takes it.
inline void PacketWorker::hand(std::uint32_t slot) {
  Due& due = gets_[slot];
  __builtin_prefetch(due.packet.left == 1 ? targets_.place_of(due.packet.connection)
                                          : positions_.data() + due.packet.position);
  if (due.by % 4 == static_cast<std::uint32_t>(DueKind::Wire)) [[likely]] {
    const std::uint32_t node = ports_[due.next].node;
    if (node != kNoIndex && !due.packet.has(Packet::kControl)) {
      loads_[node].held += due.packet.wire;
      if (chooses_ && fabric_.fans().has(due.packet.position)) [[unlikely]] {
        put_aside(node, due);
        return;
      }
    }
  } else if (due.next == kNoIndex) {
    due.next = senders_.end(due.packet.connection).port;
  }
  get(slot);
}

void PacketWorker::get(const Due& due) {
  gets_.push_back(due);
  get(static_cast<std::uint32_t>(gets_.size() - 1));
}

// Takes in what was sent here from other parts in the round before.
void PacketWorker::take_in(Workers workers, std::uint64_t round) {
  const std::size_t before = (round + 1) % 2;
  for (const std::unique_ptr<PacketWorker>& worker : workers) {
    const std::vector<Due>& crossings = worker->outboxes_[before].to[part_];
    for (std::size_t i = 0; i < crossings.size(); ++i) {
      if (i + kAhead < crossings.size()) {
        const std::uint32_t later = crossings[i + kAhead].next;
        __builtin_prefetch(&ports_[later == kNoIndex ? 0 : later]);
      }
      const Due& crossing = crossings[i];
      if (crossing.time < end_time_) {
        gets_.push_back(crossing);
        hand(static_cast<std::uint32_t>(gets_.size() - 1));
      } else {
        arrivals_.add(window_of(crossing.time), crossing);
      }
    }
  }
  begin_round(round);
}

// The port has something to begin or to free in this window.
void PacketWorker::wake(std::uint32_t index) {
  Port& port = ports_[index];
  port.due = port.due == number_ ? kNeverWindow : port.due;
  if (port.credits != kNoIndex) [[unlikely]] {
    pull_credits(index);
  }
  visit(port, index);
}

// Hands the alarms of this window to the ports, after all that comes by links at the same time.
void PacketWorker::pull_alarms() {
  senders_.settle(notes_);
  while (!notes_.alarms.empty() && notes_.alarms.top().time < end_time_) {
    const Alarm alarm = notes_.alarms.top();
    notes_.alarms.pop();
    Packet packet{.connection = alarm.connection,
                  .sequence = static_cast<std::uint32_t>(alarm.kind),
                  .flags = Packet::kControl | Packet::kAlarm};
    if (alarm.kind == Alarm::Kind::Poll) {
      packet.flags = Packet::kPause | Packet::kAlarm;
      switches_[ports_[alarm.port].node].polled = number_;
    }
    if (alarm.kind == Alarm::Kind::LinkDown) {
      packet.flags = Packet::kPause;  // XON: nothing stops a port whose link is down.
      packet.sequence = LaneOptions::kLanes;
    }
    get({.time = alarm.time, .packet = packet, .by = kNoIndex, .next = alarm.port});
    senders_.settle(notes_);
  }
}

// A port of an open switch that has nothing but data to pass on, which is nearly all of the work:
// what run_port would do, with nothing that does not apply. False if something is left for that.
// Counts what it sends at the end.
bool PacketWorker::run_plain(Port& port, std::uint32_t index) {
  Passed passed;
  bool is_over = true;
  while (true) {
    const Packet* packet = nullptr;  // Where it lies: copies in pieces would be half of the work.
    if (port.first == kNoIndex) {
      if (port.queue.empty()) {
        break;
      }
      if (port.free_at >= end_time_) {
        add_port_to_calendar(port, index, port.free_at);
        break;
      }
      packet = &take_queued(port);
    } else if (const Due& due = gets_[port.first]; !port.queue.empty() && port.free_at < due.time) {
      packet = &take_queued(port);
    } else if (due.packet.has(Packet::kControl | Packet::kPause)) [[unlikely]] {
      if (!pass_on_control(port, index, due)) {
        is_over = false;
        break;
      }
      continue;
    } else {
      port.first = due.next;
      if (loses_tail(port, due.packet)) [[unlikely]] {
        continue;
      }
      const std::int64_t queued = port.queued_bytes + due.packet.wire - sizes_.around_frame;
      port.counters.max_queued = std::max(port.counters.max_queued, queued);
      if (!passes_at_once(port, due)) {
        port.queue.push(due.packet);
        port.queued_bytes = queued;
        continue;
      }
      packet = &due.packet;
    }
    ++passed.packets;
    passed.wire += packet->wire;
    passed.last_wire = packet->wire;
    passed.last_position = packet->position;
    begin_inline(port, index, *packet, port.free_at);
    passed.end = port.free_at;
  }
  count_passed(port, passed);
  return is_over;
}

// Returns whether the queue of the port has no room for one more packet, which is lost then.
inline bool PacketWorker::loses_tail(Port& port, const Packet& packet) const {
  if (!port.is_bounded) [[likely]] {
    return false;
  }
  const std::int64_t queued = port.queued_bytes + packet.wire - sizes_.around_frame;
  const bool is_lost = queued > options_.port_queue.count() && !port.queue.empty();
  port.counters.drops += is_lost ? 1 : 0;
  return is_lost;
}

// Returns whether a packet that comes finds nothing before it, and nothing comes meanwhile.
inline bool PacketWorker::passes_at_once(Port& port, const Due& due) {
  if (!port.queue.empty()) {
    return false;
  }
  port.free_at = std::max(port.free_at, due.time);
  const bool is_alone = port.first == kNoIndex || gets_[port.first].time > port.free_at;
  return is_alone && port.free_at < end_time_;
}

// Counts packets that came by other ports and that the port has begun.
inline void PacketWorker::count_passed(Port& port, const Passed& passed) {
  if (passed.packets == 0) {
    return;
  }
  port.counters.packets += passed.packets;
  if (port.node != kNoIndex) {
    loads_[port.node].held -= passed.wire;
    port.leaving = {.time = passed.end,
                    .position = passed.last_position,
                    .bytes = static_cast<std::int32_t>(passed.last_wire - sizes_.around_frame)};
  }
}

// A control packet that finds the port idle continues at once. False, and nothing done, for others.
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

// Where the packet lies until the queue gets another one.
inline const Packet& PacketWorker::take_queued(Port& port) {
  Packet& packet = port.queue.take();
  port.queued_bytes -= packet.wire - sizes_.around_frame;
  if (port.queued_bytes > port.mark_above) [[unlikely]] {
    mark(port, packet, port.queued_bytes);
  }
  return packet;
}

// Begins a packet that came by another port.
void PacketWorker::pass_on(Port& port, std::uint32_t index, const Packet& packet,
                           Picoseconds start) {
  Passed passed{.packets = 1,
                .wire = packet.wire,
                .last_wire = packet.wire,
                .last_position = packet.position};
  begin(port, index, packet, start);
  passed.end = port.free_at;
  count_passed(port, passed);
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
    finish_grants(port);
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
  if (loses_tail(port, packet)) [[unlikely]] {
    return;
  }
  if (port.lanes == kNoIndex) [[likely]] {
    port.queue.push(packet);
  } else {
    put_in_lane(port, packet);
  }
  port.queued_bytes += packet.wire - sizes_.around_frame;
  note_queue(port, index, time);
  port.counters.max_queued = std::max(port.counters.max_queued, port.queued_bytes);
}

// Returns whether one of the connections that begin at the port may send.
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
  const bool is_filled = (port.stops & Port::kFills) != 0;
  if (is_filled && !fill(port, index, start)) [[unlikely]] {
    return;
  }
  if (port.urgent > 0) [[unlikely]] {
    --port.urgent;
    if (port.to_pause.empty()) {
      begin(port, index, port.control.pop(), start);
    } else {
      send_pause(port, start);
    }
    return;
  }
  if (port.lanes != kNoIndex) [[unlikely]] {
    send_of_lane(port, index, start);
    return;
  }
  if (!is_filled && has_own(port.source, start)) {
    if (port.own_turn || port.queue.empty()) {
      port.own_turn = false;
      static_cast<void>(send_own(port, index, port.source, start));
      return;
    }
  } else if (port.queue.empty()) {
    return;
  }
  port.own_turn = true;
  const Packet& packet = take_queued(port);
  note_queue(port, index, start);
  pass_on(port, index, packet, start);
}

// The port sends the packet from `start` on.
void PacketWorker::begin(Port& port, std::uint32_t index, const Packet& packet, Picoseconds start) {
  begin_inline(port, index, packet, start);
}

inline void PacketWorker::begin_inline(Port& port, std::uint32_t index, const Packet& packet,
                                       Picoseconds start) {
  const Picoseconds end = fabric_.end_on_line(port, index, packet.wire, start);
  if (watch_.is_on) [[unlikely]] {
    if (!observe(port, index, packet, start, end)) {
      return;
    }
  }
  port.free_at = end;
  port.counters.bytes += packet.wire;
  if (!credits_.empty()) [[unlikely]] {
    use_credits(port, index, packet, end, false);
  }
  if (packet.left == 1) {
    Packet last = packet;
    ++last.position;
    last.left = 0;
    deliver(port, last, end + port.end_delay);
    return;
  }
  // Read from where it lies, so that nothing waits for what is being written.
  const std::uint32_t position = packet.position + 1;
  const auto left = static_cast<std::uint8_t>(packet.left - 1);
  const std::uint32_t next = positions_[position];
  const Picoseconds time = fabric_.handed_on(port, next, packet.wire, start, end);
  DCHECK(time >= end_time_, "a packet arrives in the window in which it was sent");
  Due* const due = place_near(port, time);
  if (due == nullptr) [[unlikely]] {
    Packet onward = packet;
    onward.position = position;
    onward.left = left;
    put_afar(
        port,
        {.time = time, .packet = onward, .by = by_link(port.link, DueKind::Wire), .next = next});
    return;
  }
  due->time = time;
  due->packet = packet;
  due->packet.position = position;
  due->packet.left = left;
  due->by = by_link(port.link, DueKind::Wire);
  due->next = next;
}

}  // namespace trainyard
