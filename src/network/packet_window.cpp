// SPDX-License-Identifier: Apache-2.0
// The work of a window of the packet engine, port by port.
#include <algorithm>

#include "network/packet_engine.h"
#include "sim/check.h"
#include "sim/random.h"

namespace trainyard {
namespace {

// By time, then by the link that they came by; what one link brings at one instant keeps its order.
// They are few, and in runs.
void sort_arrivals(std::vector<Due>& list) {
  constexpr std::size_t kFew = 32;
  const auto before = [](const Due& a, const Due& b) {
    return a.time != b.time ? a.time < b.time : a.by < b.by;
  };
  if (list.size() > kFew) {
    std::stable_sort(list.begin(), list.end(), before);
    return;
  }
  for (std::size_t i = 1; i < list.size(); ++i) {
    if (!before(list[i], list[i - 1])) {
      continue;
    }
    const Due moved = list[i];
    std::size_t place = i;
    do {
      list[place] = list[place - 1];
      --place;
    } while (place > 0 && before(moved, list[place - 1]));
    list[place] = moved;
  }
}

}  // namespace

Picoseconds PacketEngine::next_border() const {
  const WindowCalendar::Window next = calendar_.next();
  return next == WindowCalendar::kNever ? kNeverTime : static_cast<Picoseconds>(next + 1) * window_;
}

void PacketEngine::run_window(std::vector<Completion>& completions) {
  number_ = calendar_.next();
  CHECK(number_ != WindowCalendar::kNever, "a window without work");
  calendar_.take(number_, due_);
  begin_time_ = static_cast<Picoseconds>(number_) * window_;
  end_time_ = begin_time_ + window_;
  completions_ = &completions;
  const std::size_t before = completions.size();
  ++counts_.windows;

  active_.clear();
  busy_.clear();
  for (const std::uint32_t item : due_) {
    pull(item);
  }
  for (const std::uint32_t index : active_) {
    sort_arrivals(ports_[index].arrivals);
  }
  for (const std::uint32_t index : active_) {
    const std::uint32_t node = ports_[index].node;
    if (node == kNoIndex) {
      run_port(index, nullptr);
      continue;
    }
    PacketSwitch& record = switches_[node];
    if (record.held <= record.open_limit && !record.is_counted) [[likely]] {
      run_port(index, nullptr);
    } else if (record.visited != number_) {
      record.visited = number_;
      count(record);  // Until then its other ports are left alone.
      busy_.push_back(node);
    }
  }
  for (const std::uint32_t node : busy_) {
    run_switch(switches_[node]);
  }
  begin_time_ = end_time_;
  std::sort(completions.begin() + static_cast<std::ptrdiff_t>(before), completions.end(),
            [](const Completion& a, const Completion& b) {
              return a.time != b.time ? a.time < b.time : a.order < b.order;
            });
}

// The port has work in this window, and gets a packet.
inline void PacketEngine::get(std::uint32_t index, const Arrival& arrival, std::uint32_t by) {
  Port& port = ports_[index];
  if (port.visited != number_) {
    port.visited = number_;
    active_.push_back(index);
  }
  port.arrivals.push_back({.time = arrival.time, .packet = arrival.packet, .by = by});
}

// Hands what arrives in this window by one link to the ports that take it.
void PacketEngine::pull(std::uint32_t item) {
  const std::uint32_t index = item / 4;
  Port& port = ports_[index];
  const auto kind = static_cast<CalendarItem>(item % 4);
  if (kind == CalendarItem::Port) {
    port.due = port.due == number_ ? kNoWindow : port.due;
    if (port.visited != number_) {
      port.visited = number_;
      active_.push_back(index);
    }
    return;
  }
  const std::uint32_t by = 4 * port.link + static_cast<std::uint32_t>(kind);
  if (kind == CalendarItem::Wire) {
    do {
      const Arrival arrival = port.wire.pop();
      const std::uint32_t next = positions_[arrival.packet.position];
      const std::uint32_t node = ports_[next].node;
      if (node != kNoIndex && !arrival.packet.has(Packet::kControl)) {
        switches_[node].held += arrival.packet.wire;
      }
      get(next, arrival, by);
    } while (!port.wire.empty() && port.wire.front().time < end_time_);
    if (!port.wire.empty()) {
      add_to_calendar(item, port.wire.front().time);
    }
    return;
  }
  Ring<Arrival>& ring = kind == CalendarItem::Notices ? port.notices : port.pauses;
  do {
    const Arrival arrival = ring.pop();
    const Packet& packet = arrival.packet;
    if (packet.has(Packet::kPause)) {
      get(port.opposite, arrival, by);
    } else {
      // A control packet that begins its way, or ends it at the port that its connection sends by.
      get(packet.left > 0 ? positions_[packet.position] : connections_[packet.connection].port,
          arrival, by);
    }
  } while (!ring.empty() && ring.front().time < end_time_);
  if (!ring.empty()) {
    add_to_calendar(item, ring.front().time);
  }
}

// `node` is the switch that counts what the port stores, if one does.
void PacketEngine::run_port(std::uint32_t index, PacketSwitch* node) {
  Port& port = ports_[index];
  const Due* next = port.arrivals.data();
  const Due* const last = next + port.arrivals.size();
  while (true) {
    const Picoseconds start = next_start(port);
    if (next != last && next->time <= start) {
      admit(port, *next++, node);
      continue;
    }
    if (start >= end_time_) {
      break;
    }
    send_next(port, index, start, node);
  }
  port.arrivals.clear();
  if (node != nullptr && port.leaving.bytes > 0 && port.leaving.time < end_time_) {
    release(port, *node);
  }
  schedule(port, index);
}

void PacketEngine::admit(Port& port, const Due& due, PacketSwitch* node) {
  port.free_at = std::max(port.free_at, due.time);
  const Packet& packet = due.packet;
  if (packet.has(Packet::kControl | Packet::kPause)) [[unlikely]] {
    admit_special(port, due);
    return;
  }
  if (node != nullptr) {
    store(port, due, *node);
    return;
  }
  port.queue.push(packet);
  port.queued_bytes += packet.wire - around_frame_;
  port.counters.most_queued = std::max(port.counters.most_queued, port.queued_bytes);
}

// Begins the packet whose turn it is. There is one.
void PacketEngine::send_next(Port& port, std::uint32_t index, Picoseconds start,
                             PacketSwitch* node) {
  if (node != nullptr && port.leaving.bytes > 0) {
    release(port, *node);
  }
  if (!port.control.empty() || !port.to_pause.empty()) [[unlikely]] {
    if (port.to_pause.empty()) {
      begin(port, index, port.control.pop(), start);
    } else {
      send_pause(port, index, start);
    }
    return;
  }
  const bool has_own = port.source != kNoIndex && sources_[port.source].earliest() <= start;
  if (has_own && (port.own_turn || port.queue.empty())) {
    port.own_turn = false;
    const std::uint32_t connection = sources_[port.source].take(start);
    const Packet packet = next_of(connection);
    ++port.counters.packets;
    begin(port, index, packet, start);
    go_on(port, connection, packet, start);
    return;
  }
  port.own_turn = true;
  Packet packet = port.queue.pop();
  const std::int64_t frame = packet.wire - around_frame_;
  port.queued_bytes -= frame;
  if (port.queued_bytes > port.mark_above) [[unlikely]] {
    mark(port, packet);
  }
  ++port.counters.packets;
  if (port.node != kNoIndex) {
    switches_[port.node].held -= packet.wire;
    port.leaving = {.time = start + time_on_line(port, packet.wire),
                    .in = entries_[packet.position],
                    .bytes = static_cast<std::int32_t>(frame)};
  }
  begin(port, index, packet, start);
}

// The queue behind the packet is above Kmin.
void PacketEngine::mark(Port& port, Packet& packet) {
  if (packet.has(Packet::kMarked)) {
    return;
  }
  port.random += 0x9E3779B97F4A7C15;  // The step of splitmix64.
  const auto draw = static_cast<std::uint32_t>(mix64(port.random) >> 32);
  if (markers_[port.marker].marks(Bytes(port.queued_bytes), draw)) {
    packet.flags |= Packet::kMarked;
    ++port.counters.marks;
  }
}

// The port sends the packet from `start` on.
void PacketEngine::begin(Port& port, std::uint32_t index, Packet packet, Picoseconds start) {
  if (starts_ != nullptr) [[unlikely]] {
    starts_->push_back({.time = start,
                        .link = port.link,
                        .connection = packet.connection,
                        .sequence = packet.sequence});
  }
  const Picoseconds end = start + time_on_line(port, packet.wire);
  port.free_at = end;
  port.counters.bytes += packet.wire;
  --packet.left;
  ++packet.position;
  if (packet.left == 0) {
    deliver(port, index, packet, end + port.end_delay);
    return;
  }
  const Picoseconds time = handed_on(port, packet, start, end);
  DCHECK(time >= end_time_, "a packet arrives in the window in which it was sent");
  if (port.wire.empty()) {
    add_to_calendar(item_of(index, CalendarItem::Wire), time);
  }
  port.wire.push({.time = time, .packet = packet});
}

// When the next port of the packet has it.
inline Picoseconds PacketEngine::handed_on(const Port& port, const Packet& packet,
                                           Picoseconds start, Picoseconds end) const {
  if (!port.cuts_through) {
    return end + port.through_delay;
  }
  // A faster port would run out of bytes: it begins so late that both end at once.
  const Port& next = ports_[positions_[packet.position]];
  const Picoseconds held = end - start - time_on_line(next, packet.wire);
  const Picoseconds read =
      time_on_line(port, std::min<std::int64_t>(kCutThroughBytes, packet.wire));
  return start + std::max(read, held) + port.through_delay;
}

PacketEngine::Counts PacketEngine::counts() const {
  Counts counts = counts_;
  for (const Port& port : ports_) {
    counts.packet_hops += port.counters.packets;
  }
  return counts;
}

PacketStats PacketEngine::stats() const {
  PacketStats stats;
  stats.cnps = counts_.cnps;
  stats.acks = counts_.acks;
  for (const Port& port : ports_) {
    const PortTally& counters = port.counters;
    stats.hops += counters.packets;
    stats.marks += counters.marks;
    stats.pauses += counters.pauses_sent;
    stats.paused_time += SimTime(paused_time(port));
    stats.drops += counters.drops;
    stats.most_queued = std::max(stats.most_queued, Bytes(counters.most_queued));
  }
  return stats;
}

const Port* PacketEngine::port(LinkId link) const {
  const std::uint32_t index = port_index_[link.value()];
  return index == kNoIndex ? nullptr : &ports_[index];
}

Picoseconds PacketEngine::paused_time(const Port& port) const {
  return port.counters.paused_time + (port.paused ? begin_time_ - port.paused_since : 0);
}

std::vector<std::pair<LinkId, std::int64_t>> PacketEngine::payload_by_link() const {
  std::vector<std::int64_t> bytes(ports_.size());
  for (const Connection& connection : connections_) {
    for (std::uint32_t hop = 0; hop < connection.hops; ++hop) {
      bytes[positions_[connection.path + hop]] += connection.sent_bytes;
    }
  }
  std::vector<std::pair<LinkId, std::int64_t>> result;
  for (std::uint32_t link = 0; link < port_index_.size(); ++link) {
    if (port_index_[link] != kNoIndex && bytes[port_index_[link]] > 0) {
      result.emplace_back(LinkId(link), bytes[port_index_[link]]);
    }
  }
  return result;
}

}  // namespace trainyard
