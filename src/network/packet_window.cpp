// SPDX-License-Identifier: Apache-2.0
// The work of a window of the packet engine, port by port.
#include <algorithm>

#include "network/packet_engine.h"
#include "sim/check.h"

namespace trainyard {

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
  for (const std::uint32_t item : due_) {
    if (item % 2 == 0) {
      pull(item);
    } else {
      Port& port = ports_[item / 2];
      if (port.due == number_) {
        port.due = WindowCalendar::kNever;
      }
      if (port.visited != number_) {
        port.visited = number_;
        active_.push_back(item / 2);
      }
    }
  }
  for (const std::uint32_t index : active_) {
    run_port(index);
  }
  begin_time_ = end_time_;
  std::sort(completions.begin() + static_cast<std::ptrdiff_t>(before), completions.end(),
            [](const Completion& a, const Completion& b) {
              return a.time != b.time ? a.time < b.time : a.order < b.order;
            });
}

// Hands what arrives in this window by one link to the ports that it takes next.
void PacketEngine::pull(std::uint32_t item) {
  Ring<Arrival>& wire = ports_[item / 2].wire;
  do {
    const Arrival arrival = wire.pop();
    const std::uint32_t index = positions_[arrival.packet.position];
    Port& port = ports_[index];
    if (port.visited != number_) {
      port.visited = number_;
      active_.push_back(index);
    }
    port.arrivals.push_back(arrival);
  } while (!wire.empty() && wire.front().time < end_time_);
  if (!wire.empty()) {
    add_to_calendar(item, wire.front().time);
  }
}

// By time, then by the link that they came by: those of one link are never equal in time. They are
// few, and in runs.
void PacketEngine::sort_arrivals(Port& port, const PacketEngine& engine) {
  const auto link_of = [&](const Arrival& arrival) {
    return engine.ports_[engine.positions_[arrival.packet.position - 1]].link;
  };
  const auto before = [&](const Arrival& a, const Arrival& b) {
    return a.time != b.time ? a.time < b.time : link_of(a) < link_of(b);
  };
  constexpr std::size_t kFew = 32;
  std::vector<Arrival>& list = port.arrivals;
  if (list.size() > kFew) {
    std::sort(list.begin(), list.end(), before);
    return;
  }
  for (std::size_t i = 1; i < list.size(); ++i) {
    if (!before(list[i], list[i - 1])) {
      continue;
    }
    const Arrival moved = list[i];
    std::size_t place = i;
    do {
      list[place] = list[place - 1];
      --place;
    } while (place > 0 && before(moved, list[place - 1]));
    list[place] = moved;
  }
}

void PacketEngine::run_port(std::uint32_t index) {
  Port& port = ports_[index];
  sort_arrivals(port, *this);
  const Arrival* next = port.arrivals.data();
  const Arrival* const last = next + port.arrivals.size();
  PacketSource* const source = port.source == kNoIndex ? nullptr : &sources_[port.source];
  while (true) {
    const Picoseconds own = source == nullptr ? kNeverTime : source->earliest();
    Picoseconds start = port.free_at;
    if (port.queue.empty()) {
      const Picoseconds arrival = next == last ? kNeverTime : next->time;
      start = std::max(start, std::min(arrival, own));
    }
    if (start >= end_time_) {
      break;
    }
    for (; next != last && next->time <= start; ++next) {
      admit(port, *next);
    }
    const bool has_own = own <= start;
    if (has_own && (port.own_turn || port.queue.empty())) {
      port.own_turn = false;
      const std::uint32_t connection = source->take(start);
      begin(port, index, next_of(connection), start);
      go_on(port, connection, start);
    } else {
      port.own_turn = true;
      const Packet packet = port.queue.pop();
      port.queued_bytes -= packet.wire;
      begin(port, index, packet, start);
    }
  }
  for (; next != last; ++next) {
    admit(port, *next);
  }
  port.arrivals.clear();
  schedule(port, index);
}

void PacketEngine::admit(Port& port, const Arrival& arrival) {
  port.queue.push(arrival.packet);
  port.queued_bytes += arrival.packet.wire;
  port.most_queued = std::max(port.most_queued, port.queued_bytes);
}

// Cuts the next packet off the message that `connection` is sending.
Packet PacketEngine::next_of(std::uint32_t id) {
  Connection& connection = connections_[id];
  const Message& message = messages_[connection.sending];
  const std::int64_t payload = std::min(connection.unsent, options_.mtu.count());
  const bool is_first = connection.unsent == message.size;
  std::int64_t wire = full_wire_;
  if (is_first || payload != options_.mtu.count()) {
    wire = wire_of(payload, is_first);
  }
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
  return {.connection = id,
          .position = connection.path,
          .sequence = connection.sequence++,
          .wire = static_cast<std::uint16_t>(wire),
          .left = connection.hops,
          .flags = ends_message ? Packet::kEndsMessage : std::uint8_t{0}};
}

// After a packet of `connection`: it takes its next turn when it may.
void PacketEngine::go_on(const Port& port, std::uint32_t id, Picoseconds start) {
  const Connection& connection = connections_[id];
  if (connection.sending == kNoIndex) {
    return;
  }
  const Message& message = messages_[connection.sending];
  if (message.time <= start) {
    sources_[port.source].make_ready(id);
  } else {
    sources_[port.source].wait(id, message.time, message.order);
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
  ++port.packets;
  port.bytes += packet.wire;
  --packet.left;
  ++packet.position;
  if (packet.left == 0) {
    deliver(packet, end + port.end_delay);
    return;
  }
  const Picoseconds time = handed_on(port, packet, start, end);
  DCHECK(time >= end_time_, "a packet arrives in the window in which it was sent");
  if (port.wire.empty()) {
    add_to_calendar(2 * index, time);
  }
  port.wire.push({.time = time, .packet = packet});
}

// When the next port of the packet has it.
Picoseconds PacketEngine::handed_on(const Port& port, const Packet& packet, Picoseconds start,
                                    Picoseconds end) const {
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

// The last link is a FIFO, so what happens at the target is known when the packet begins to leave.
void PacketEngine::deliver(const Packet& packet, Picoseconds time) {
  DCHECK(time >= end_time_, "a packet ends in the window in which it was sent");
  if (!packet.has(Packet::kEndsMessage)) {
    return;
  }
  Connection& connection = connections_[packet.connection];
  const std::uint32_t slot = connection.oldest;
  Message& message = messages_[slot];
  completions_->push_back(
      {.time = time, .order = message.order, .done = message.done, .token = message.token});
  connection.oldest = message.next;
  message.next = free_message_;
  free_message_ = slot;
}

}  // namespace trainyard
