// SPDX-License-Identifier: Apache-2.0
// Switches whose buffer is counted, and PFC. packet_switch.h says when.
#include "network/packet_switch.h"

#include <algorithm>
#include <tuple>

#include "hw/pfc.h"
#include "network/packet_engine.h"
#include "sim/check.h"

namespace trainyard {

void PacketEngine::run_switch(std::uint32_t number) {
  PacketSwitch& node = switches_[number];
  const bool is_quiet = node.stopped == 0 && node.to_send == 0;
  if (is_quiet && !options_.always_exact && is_calm(node)) {
    for (const std::uint32_t index : node.ports) {
      if (ports_[index].visited == number_) {
        run_port(index, &node);
      }
    }
  } else {
    run_exactly(node);
  }
  // Half of the limit, so that it does not change to and fro.
  if (node.stopped == 0 && node.to_send == 0 && loads_[number].held <= node.open_limit / 2 &&
      !options_.always_exact) {
    stop_counting(number);
  }
}

// Whether no group reaches its threshold in this window, whatever the order of arrivals and even if
// nothing left: all that comes is taken from what is free first.
bool PacketEngine::is_calm(const PacketSwitch& node) {
  if (!options_.pfc) {
    return false;
  }
  incoming_.assign(incoming_.size(), 0);
  std::int64_t total = 0;
  for (const std::uint32_t index : node.ports) {
    const Port& port = ports_[index];
    if (port.visited != number_) {
      continue;
    }
    for (std::uint32_t slot = port.first; slot != kNoIndex; slot = gets_[slot].next) {
      const Due& due = gets_[slot];
      if (due.packet.has(Packet::kControl | Packet::kPause)) {
        continue;
      }
      const std::uint32_t in = entries_[due.packet.position];
      if (in >= incoming_.size()) {
        incoming_.resize(in + 1);
      }
      incoming_[in] += due.packet.wire;
      total += due.packet.wire;
    }
  }
  const int exponent = options_.alpha_exponent;
  const std::int64_t margin =
      exponent >= 0 ? total * (std::int64_t{1} << exponent) : (total >> -exponent) + 1;
  for (std::uint32_t in = 0; in < incoming_.size(); ++in) {
    if (incoming_[in] > 0 && node.buffer.ingress_bytes(in, 0).count() + incoming_[in] >=
                                 node.buffer.threshold(in, 0).count() - margin) {
      return false;
    }
  }
  return true;
}

// Tells the buffer of all that the switch stores at the beginning of the window.
void PacketEngine::count(std::uint32_t number) {
  PacketSwitch& node = switches_[number];
  loads_[number].limit = -1;
  const auto admit_one = [&](const Port& port, std::uint32_t in, std::int64_t bytes) {
    const Admission admission =
        node.buffer.admit({.in_port = in, .out_port = port.out, .priority = 0}, Bytes(bytes));
    CHECK(admission.accepted() && !admission.xoff, "an open switch was near a threshold");
  };
  for (const std::uint32_t index : node.ports) {
    Port& port = ports_[index];
    if (port.leaving.bytes > 0 && port.leaving.time < begin_time_) {
      port.leaving.bytes = 0;
    }
    if (port.leaving.bytes > 0) {
      admit_one(port, entries_[port.leaving.position], port.leaving.bytes);
    }
    for (std::uint32_t i = 0; i < port.queue.size(); ++i) {
      const Packet& packet = port.queue.at(i);
      admit_one(port, entries_[packet.position], packet.wire - around_frame_);
    }
  }
}

void PacketEngine::stop_counting(std::uint32_t number) {
  PacketSwitch& node = switches_[number];
  loads_[number].limit = node.open_limit;
  const auto release_one = [&](const Port& port, std::uint32_t in, std::int64_t bytes) {
    node.buffer.release({.in_port = in, .out_port = port.out, .priority = 0}, Bytes(bytes));
  };
  for (const std::uint32_t index : node.ports) {
    const Port& port = ports_[index];
    if (port.leaving.bytes > 0) {
      release_one(port, entries_[port.leaving.position], port.leaving.bytes);
    }
    for (std::uint32_t i = 0; i < port.queue.size(); ++i) {
      const Packet& packet = port.queue.at(i);
      release_one(port, entries_[packet.position], packet.wire - around_frame_);
    }
  }
  CHECK(node.buffer.stored() == Bytes(0), "a switch stored what no queue holds");
}

// All ports together, in order of time; at one instant what leaves frees the buffer, then what
// arrives is stored, then ports begin to send.
void PacketEngine::run_exactly(PacketSwitch& node) {
  ++counts_.exact_windows;
  collect(node);
  std::size_t next = 0;
  while (true) {
    const bool has_arrival = next < exact_arrivals_.size();
    if (!has_arrival && events_.empty()) {
      break;
    }
    const Picoseconds arrival = has_arrival ? exact_arrivals_[next].first.time : kNeverTime;
    if (!events_.empty() && (events_.front().time < arrival ||
                             (events_.front().time == arrival && !events_.front().is_start))) {
      take_event(node);
      continue;
    }
    const auto& [due, index] = exact_arrivals_[next++];
    admit(ports_[index], due, &node);
    push_start(index);
  }
  for (const std::uint32_t index : node.ports) {
    Port& port = ports_[index];
    port.first = kNoIndex;
    schedule(port, index);
    // Freeing may let somebody go on, so it has its window even if nothing else is due there.
    if (port.leaving.bytes > 0) {
      add_port_to_calendar(port, index, port.leaving.time);
    }
  }
}

// What happens in this window as far as it is known when it begins.
void PacketEngine::collect(PacketSwitch& node) {
  exact_arrivals_.clear();
  events_.clear();
  for (const std::uint32_t index : node.ports) {
    Port& port = ports_[index];
    if (port.visited == number_) {
      for (std::uint32_t slot = port.first; slot != kNoIndex; slot = gets_[slot].next) {
        exact_arrivals_.emplace_back(gets_[slot], index);
      }
    }
    if (port.leaving.bytes > 0 && port.leaving.time < begin_time_) {
      release(port, node);
    }
    if (port.leaving.bytes > 0 && port.leaving.time < end_time_) {
      push_event(port.leaving.time, index, false);
    }
    push_start(index);
  }
  std::stable_sort(
      exact_arrivals_.begin(), exact_arrivals_.end(), [](const auto& a, const auto& b) {
        return a.first.time != b.first.time ? a.first.time < b.first.time : a.first.by < b.first.by;
      });
}

void PacketEngine::push_event(Picoseconds time, std::uint32_t port, bool is_start) {
  events_.push_back({.time = time, .port = port, .link = ports_[port].link, .is_start = is_start});
  std::push_heap(events_.begin(), events_.end(), [](const SwitchEvent& a, const SwitchEvent& b) {
    return std::tie(b.time, b.is_start, b.link) < std::tie(a.time, a.is_start, a.link);
  });
}

void PacketEngine::push_start(std::uint32_t index) {
  const Picoseconds start = next_start(ports_[index]);
  if (start < end_time_) {
    push_event(start, index, true);
  }
}

// The start of a port may have been put off since it was noted, or noted twice.
void PacketEngine::take_event(PacketSwitch& node) {
  const SwitchEvent event = events_.front();
  std::pop_heap(events_.begin(), events_.end(), [](const SwitchEvent& a, const SwitchEvent& b) {
    return std::tie(b.time, b.is_start, b.link) < std::tie(a.time, a.is_start, a.link);
  });
  events_.pop_back();
  Port& port = ports_[event.port];
  if (!event.is_start) {
    if (port.leaving.bytes > 0 && port.leaving.time == event.time) {
      release(port, node);
    }
    return;
  }
  if (next_start(port) != event.time) {
    return;
  }
  send_next(port, event.port, event.time, &node);
  if (port.leaving.bytes > 0 && port.leaving.time < end_time_) {
    push_event(port.leaving.time, event.port, false);
  }
  push_start(event.port);
}

void PacketEngine::store(Port& port, const Due& due, PacketSwitch& node) {
  const Packet& packet = due.packet;
  const std::int64_t frame = packet.wire - around_frame_;
  const std::uint32_t in = entries_[packet.position];
  const Admission admission =
      node.buffer.admit({.in_port = in, .out_port = port.out, .priority = 0}, Bytes(frame));
  if (!admission.accepted()) {
    ++port.counters.drops;
    loads_[port.node].held -= packet.wire;
    return;
  }
  port.queue.push(packet);
  port.queued_bytes += frame;
  note_queue(port, due.time);
  port.counters.most_queued = std::max(port.counters.most_queued, port.queued_bytes);
  if (admission.xoff) {
    say(node, in, true, due.time);
  }
}

// The last byte of the packet that the port sent has left.
void PacketEngine::release(Port& port, PacketSwitch& node) {
  const Leaving leaving = port.leaving;
  const std::uint32_t in = entries_[leaving.position];
  const bool xon = node.buffer.release({.in_port = in, .out_port = port.out, .priority = 0},
                                       Bytes(leaving.bytes));
  port.leaving.bytes = 0;
  if (xon) {
    say(node, in, false, leaving.time);
  }
}

// Tells the sender of an ingress port to stop or to go on: a PFC frame goes out by the link back,
// before all that waits there.
void PacketEngine::say(PacketSwitch& node, std::uint32_t in, bool stop, Picoseconds time) {
  for (const std::uint32_t index : node.ports) {
    Port& port = ports_[index];
    if (port.out != in) {
      continue;
    }
    port.to_pause.push(stop ? 1 : 0);
    ++port.urgent;
    port.free_at = std::max(port.free_at, time);
    port.counters.pauses_sent += stop ? 1 : 0;
    node.stopped = stop ? node.stopped + 1 : node.stopped - 1;
    ++node.to_send;
    push_start(index);
    return;
  }
  CHECK(false, "a packet came by a link without a way back");
}

void PacketEngine::send_pause(Port& port, std::uint32_t index, Picoseconds start) {
  const bool stop = port.to_pause.pop() != 0;
  --switches_[port.node].to_send;
  const Picoseconds end = start + time_on_line(port, kPfcWireBytes.count());
  port.free_at = end;
  port.counters.bytes += static_cast<std::uint64_t>(kPfcWireBytes.count());
  const Picoseconds time = end + port.pause_delay;
  DCHECK(time >= end_time_, "a pause takes effect in the window in which it was sent");
  if (is_observed_ && time > losses_.fails_at(LinkId(port.link))) {
    return;
  }
  if (port.pauses.empty()) {
    add_to_calendar(item_of(index, CalendarItem::Pauses), time);
  }
  const auto flags =
      static_cast<std::uint8_t>(Packet::kPause | (stop ? Packet::kMarked : std::uint8_t{0}));
  port.pauses.push({.time = time,
                    .packet = {.connection = kNoIndex,
                               .position = 0,
                               .sequence = 0,
                               .wire = 0,
                               .left = 0,
                               .flags = flags}});
}

}  // namespace trainyard
