// SPDX-License-Identifier: Apache-2.0
// Setting up, and what is no data; packet_window.cpp has the work of a window.
#include "network/packet_worker.h"

#include "sim/check.h"

namespace trainyard {

PacketWorker::PacketWorker(PacketFabric& fabric, PacketSenders& senders, PacketTargets& targets,
                           PacketWatch& watch)
    : fabric_(fabric),
      senders_(senders),
      targets_(targets),
      watch_(watch),
      options_(fabric.options()),
      sizes_(fabric.sizes()),
      hears_acks_(senders.hears_acks()) {}

void PacketWorker::look_up() {
  ports_ = fabric_.ports();
  positions_ = fabric_.positions();
  entries_ = fabric_.entries();
  loads_ = fabric_.loads();
  switches_ = fabric_.switches();
  credits_ = fabric_.credits();
  lanes_ = fabric_.lanes();
}

void PacketWorker::start_over(Picoseconds window, Picoseconds begin) {
  window_ = window;
  begin_time_ = begin;
  number_ = static_cast<std::uint64_t>(begin / window);
  end_time_ = static_cast<Picoseconds>(number_ + 1) * window;
  calendar_.reset(number_);
  const auto add = [&](std::uint32_t index, CalendarItem kind, const Ring<Arrival>& ring) {
    if (!ring.empty()) {
      add_to_calendar(item_of(index, kind), ring.front().time);
    }
  };
  for (std::uint32_t index = 0; index < ports_.size(); ++index) {
    Port& port = ports_[index];
    port.due = kNoWindow;
    port.visited = kNoWindow;
    add(index, CalendarItem::Wire, port.wire);
    add(index, CalendarItem::Notices, port.notices);
    add(index, CalendarItem::Pauses, port.pauses);
    schedule(port, index);
    if (port.leaving.bytes > 0 && port.leaving.time >= begin_time_) {
      add_port_to_calendar(port, index, port.leaving.time);
    }
    if (port.credits != kNoIndex) {
      for (const CreditReturn& back : credits_[port.credits].returns) {
        add_port_to_calendar(port, index, back.time);
      }
    }
  }
}

void PacketWorker::schedule(Port& port, std::uint32_t index) {
  const Picoseconds start = next_start(port);
  if (start != kNeverTime) {
    add_port_to_calendar(port, index, start);
  }
}

// The last link is a FIFO, so what happens at its end at `time` is known when the packet begins to
// leave on it.
void PacketWorker::deliver(Port& port, std::uint32_t index, const Packet& packet,
                           Picoseconds time) {
  DCHECK(time >= end_time_, "a packet ends in the window in which it was sent");
  if (packet.has(Packet::kControl)) {
    if (packet.has(Packet::kCnp) || hears_acks_) {
      notify(port, index, packet, time);
    }
    return;
  }
  const PacketAnswers answers = targets_.take(packet, time, notes_);
  for (std::uint32_t i = 0; i < answers.count; ++i) {
    notify(port, index, answers.packets[i], time);
  }
}

// Something happens at the end of the link of `port` at `time`.
void PacketWorker::notify(Port& port, std::uint32_t index, const Packet& packet, Picoseconds time) {
  if (port.notices.empty()) {
    add_to_calendar(item_of(index, CalendarItem::Notices), time);
  }
  port.notices.push({.time = time, .packet = packet});
}

// What is no data and reaches a port: a PFC frame, a control packet on its way, or one at its end.
void PacketWorker::admit_special(Port& port, const Due& due) {
  const Packet& packet = due.packet;
  if (packet.has(Packet::kCredit)) {
    take_credits(port, due);
  } else if (packet.has(Packet::kPause)) {
    bool stop = packet.has(Packet::kMarked);
    const bool was_paused = (port.stops & Port::kPaused) != 0;
    port.counters.pauses_received += stop ? 1 : 0;
    if (port.lanes != kNoIndex) {
      LaneQueues& queues = lanes_[port.lanes];
      queues.set_paused(packet.sequence, stop);
      stop = queues.paused != 0;
    }
    if (stop && !was_paused) {
      port.paused_since = due.time;
      port.stops |= Port::kPaused;
    } else if (!stop && was_paused) {
      port.counters.paused_time += due.time - port.paused_since;
      port.stops &= static_cast<std::uint8_t>(~Port::kPaused);
    }
  } else if (packet.left > 0) {
    port.control.push(packet);
    ++port.urgent;
  } else {
    senders_.on_notice(packet, due.time, notes_);
  }
}

}  // namespace trainyard
