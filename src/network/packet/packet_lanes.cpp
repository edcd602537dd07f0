// SPDX-License-Identifier: Apache-2.0
// Ports with lanes in the packet engine.
#include "network/packet/packet_lanes.h"

#include <algorithm>

#include "network/packet/packet_worker.h"

namespace trainyard {

// Links of the fabric have lanes; what is inside servers knows no classes.
void PacketFabric::set_up_lanes(Port& port, const Link& link) {
  if (!options_.lanes || link.spec.kind != LinkKind::Network) {
    return;
  }
  port.lanes = static_cast<std::uint32_t>(lanes_.size());
  port.stops |= Port::kLanes;
  lanes_.push_back({.scheduler = PriorityScheduler(options_.lanes->strict,
                                                   options_.lanes->quanta(sizes_.largest))});
}

std::uint32_t& PacketFabric::source_of(Port& port, std::uint32_t connection) {
  return port.lanes == kNoIndex ? port.source
                                : lanes_[port.lanes].lanes.at(lane_of(connection)).source;
}

// Does what next_start() does for a port without lanes.
Picoseconds PacketWorker::next_lane_start(const Port& port) const {
  const LaneQueues& queues = lanes_[port.lanes];
  Picoseconds earliest = kNeverTime;
  for (std::uint32_t number = 0; number < LaneOptions::kLanes; ++number) {
    const LaneQueues::Lane& lane = queues.lanes[number];
    if (queues.is_stopped(number)) {
      continue;
    }
    if (!lane.queue.empty()) {
      return port.free_at;
    }
    if (lane.source != kNoIndex) {
      earliest = std::min(earliest, senders_.earliest(lane.source));
    }
  }
  return earliest == kNeverTime ? kNeverTime : std::max(earliest, port.free_at);
}

// Lanes that are not stopped and have something to send, as bits.
std::uint8_t PacketWorker::ready_lanes(const Port& port, Picoseconds start) {
  const LaneQueues& queues = lanes_[port.lanes];
  unsigned ready = 0;
  for (std::uint32_t number = 0; number < LaneOptions::kLanes; ++number) {
    const LaneQueues::Lane& lane = queues.lanes[number];
    const bool has_any = !lane.queue.empty() || has_own(lane.source, start);
    ready |= !queues.is_stopped(number) && has_any ? 1U << number : 0U;
  }
  return static_cast<std::uint8_t>(ready);
}

// Begins the packet whose turn it is. There is one, unless a window has no room for it.
void PacketWorker::send_of_lane(Port& port, std::uint32_t index, Picoseconds start) {
  LaneQueues& queues = lanes_[port.lanes];
  const int picked = queues.scheduler.pick(ready_lanes(port, start));
  if (picked == PriorityScheduler::kNone) {
    return;
  }
  LaneQueues::Lane& lane = queues.lanes[static_cast<std::size_t>(picked)];
  if ((lane.own_turn || lane.queue.empty()) && has_own(lane.source, start)) {
    lane.own_turn = false;
    if (const std::optional<Packet> packet = send_own(port, index, lane.source, start)) {
      queues.scheduler.sent(picked, packet->wire);
    }
    return;
  }
  lane.own_turn = true;
  Packet packet = lane.queue.pop();
  const std::int64_t frame = packet.wire - sizes_.around_frame;
  lane.queued_bytes -= frame;
  port.queued_bytes -= frame;
  if (lane.queued_bytes > port.mark_above) {
    mark(port, packet, lane.queued_bytes);
  }
  note_queue(port, index, start);
  queues.scheduler.sent(picked, packet.wire);
  queues.leaving = static_cast<std::uint8_t>(picked);
  pass_on(port, index, packet, start);
}

void PacketWorker::put_in_lane(const Port& port, const Packet& packet) {
  LaneQueues::Lane& lane = lanes_[port.lanes].lanes[fabric_.lane_of(packet.connection)];
  lane.queue.push(packet);
  lane.queued_bytes += packet.wire - sizes_.around_frame;
}

}  // namespace trainyard
