// SPDX-License-Identifier: Apache-2.0
#include "network/packet_parts/packet_pauses.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>
#include <utility>

#include "network/packet/packet_engine.h"
#include "network/packet/packet_worker.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "topology/graph/dependency_graph.h"

namespace trainyard {

Picoseconds PausingHost::resume_time() const {
  return receiver.is_paused() ? std::min(receiver.resume_time().picoseconds(), until) : kNeverTime;
}

void PortGuard::on_change(Picoseconds now, bool was_paused, Picoseconds since,
                          std::uint64_t packets) {
  const Picoseconds interval = now / settings_.poll.picoseconds();
  if (interval != interval_) {  // Up to now the port was as it was in all of it.
    interval_ = interval;
    began_paused_ = was_paused;
    packets_ = packets;
    paused_ = 0;
  }
  paused_ += was_paused ? now - std::max(since, interval * settings_.poll.picoseconds()) : 0;
}

PauseWatchdog::Event PortGuard::poll(Picoseconds now, const Polled& polled) {
  const Picoseconds length = settings_.poll.picoseconds();
  CHECK(now % length == 0, "a poll in the middle of an interval");
  const Picoseconds begin = now - length;
  PauseWatchdog::Sample sample{.has_packets = polled.has_packets};
  if (interval_ == begin / length) {
    sample.sent = !began_paused_ || polled.packets != packets_;
    sample.paused = SimTime(paused_ + (polled.is_paused ? now - std::max(polled.since, begin) : 0));
  } else {
    sample.sent = !polled.is_paused;
    sample.paused = SimTime(polled.is_paused ? length : 0);
  }
  const PauseWatchdog::Event event = dog_.poll(settings_, sample);
  storms += event == PauseWatchdog::Event::Storm ? 1 : 0;
  return event;
}

Picoseconds PortGuard::next_poll(Picoseconds now) const {
  const Picoseconds length = settings_.poll.picoseconds();
  return (now + length / 2 + length - 1) / length * length;
}

// From here on: what the engine does with them.

// Sets up pauses where a link leads from a host that pauses into the fabric, and where a switch
// sends.
void PacketFabric::set_up_pauses(Port& port, const Link& link) {
  const auto found = std::ranges::find_if(options_.slow_hosts, [&](const SlowHost& host) {
    return host.node == link.source && link.spec.kind == LinkKind::Network;
  });
  if (found != options_.slow_hosts.end()) {
    port.host = static_cast<std::uint32_t>(hosts_.size());
    port.stops |= Port::kHost;
    hosts_.push_back(
        {.receiver = SlowReceiver(found->receiver),
         .from = found->from.picoseconds(),
         .until = found->until == SimTime::max() ? kNeverTime : found->until.picoseconds()});
  }
  // As in Guo et al., SIGCOMM 2016: of ports to servers. Those between switches are stopped as
  // well, but they are not the cause, and all that goes through them would be lost.
  const bool leads_to_server = topology_.node(link.target).kind != NodeKind::Switch;
  if (options_.watchdog && is_of_fabric(link) && leads_to_server) {
    port.guard = static_cast<std::uint32_t>(guards_.size());
    guards_.emplace_back(*options_.watchdog);
  }
}

// Adds hosts before any path, so that each has a position of its own.
void PacketFabric::add_hosts() {
  for (const SlowHost& host : options_.slow_hosts) {
    const std::size_t before = hosts_.size();
    for (const LinkId link : topology_.links_from(host.node)) {
      if (topology_.link(link).spec.kind == LinkKind::Network) {
        const std::uint32_t index = port_of(link);
        hosts_[ports_[index].host].position = static_cast<std::uint32_t>(positions_.size());
        positions_.push_back(index);
        entries_.push_back(0);
      }
    }
    if (hosts_.size() == before) {
      throw ConfigError(fmt::format(
          "packet engine: expected slow receivers with links into the fabric, each once, found {}",
          topology_.node(host.node).name));
    }
  }
}

// A packet begins that arrives at a host at `time`: the port that answers is told then.
void PacketWorker::tell_host(const Port& port, const Packet& packet, Picoseconds time) {
  if (port.opposite == kNoIndex || ports_[port.opposite].host == kNoIndex ||
      packet.has(Packet::kControl)) {
    return;
  }
  // Set up with the port, and not changed by the worker of the host.
  const PausingHost& host = fabric_.hosts()[ports_[port.opposite].host];
  if (host.counts(time)) {
    notify(port,
           {.position = host.position,
            .wire = static_cast<std::uint16_t>(packet.wire - sizes_.around_frame),
            .left = 1,
            .flags = Packet::kPause | Packet::kNak},
           time);
  }
}

// A packet has arrived at the host behind this port.
void PacketWorker::take_in_host(Port& port, const Due& due) {
  PausingHost& host = fabric_.hosts()[port.host];
  if (host.receiver.on_packet(Bytes(due.packet.wire), SimTime(due.time))) {
    say_from_host(port, true);
  }
}

// All lossless classes, where there are several.
void PacketWorker::say_from_host(Port& port, bool stop) {
  const std::size_t lane = options_.lanes ? LaneOptions::kLanes : 0;
  port.to_pause.push(static_cast<std::uint8_t>(2 * lane + (stop ? 1 : 0)));
  ++port.urgent;
  port.counters.pauses_sent += stop ? 1 : 0;
}

// The port begins something at `start`: it may be that its host lets the switch go on.
void PacketWorker::let_go_on(Port& port, Picoseconds start) {
  PausingHost& host = fabric_.hosts()[port.host];
  if (host.resume_time() <= start) {
    host.receiver.resume();
    say_from_host(port, false);
  }
}

// Does what next_start() does for a port that something stops, or whose host pauses.
Picoseconds PacketWorker::next_stopped_start(const Port& port) const {
  Picoseconds start = kNeverTime;
  if (port.lanes != kNoIndex) {
    start = next_lane_start(port);
  } else if (!port.is_stopped()) {
    start = (port.stops & Port::kFills) != 0 ? next_filled_start(port) : next_data_start(port);
  }
  if (port.host != kNoIndex) {
    const Picoseconds resume = fabric_.hosts()[port.host].resume_time();
    start = resume == kNeverTime ? start : std::min(start, std::max(port.free_at, resume));
  }
  return start;
}

void PacketWorker::arm_guard(Port& port, std::uint32_t index, Picoseconds now) {
  PortGuard& guard = fabric_.guards()[port.guard];
  const bool is_paused = (port.stops & Port::kPaused) != 0;
  if (guard.is_armed || !guard.is_of_interest(is_paused, !port.queue.empty())) {
    return;
  }
  guard.is_armed = true;
  notes_.alarms.push({.time = guard.next_poll(now),
                      .port = index,
                      .connection = kNoIndex,
                      .kind = Alarm::Kind::Poll});
}

void PacketWorker::poll_guard(Port& port, std::uint32_t index, Picoseconds now,
                              PacketSwitch& node) {
  PortGuard& guard = fabric_.guards()[port.guard];
  guard.is_armed = false;
  const PauseWatchdog::Event event =
      guard.poll(now, {.is_paused = (port.stops & Port::kPaused) != 0,
                       .since = port.paused_since,
                       .packets = port.counters.packets,
                       .has_packets = !port.queue.empty()});
  if (event != PauseWatchdog::Event::Nothing) {
    const bool begins = event == PauseWatchdog::Event::Storm;
    if (options_.watchdog->action == StormAction::Forward) {
      port.stops = static_cast<std::uint8_t>(begins ? port.stops | Port::kForced
                                                    : port.stops & ~Port::kForced);
    } else {
      node.dropping.resize(std::max(node.dropping.size(), port.out + std::size_t{1}));
      node.dropping[port.out] = begins;
      node.storms = begins ? node.storms + 1 : node.storms - 1;
      if (begins) {
        drop_queue(port, index, now, node);
      }
    }
  }
  arm_guard(port, index, now);
}

// All that waits at the port is lost.
void PacketWorker::drop_queue(Port& port, std::uint32_t index, Picoseconds now,
                              PacketSwitch& node) {
  while (!port.queue.empty()) {
    const Packet packet = port.queue.pop();
    const BufferPlace place = place_of(port, packet);
    const std::int64_t frame = packet.wire - sizes_.around_frame;
    port.queued_bytes -= frame;
    count_storm_drop(port, packet);
    if (node.buffer.release(place, Bytes(frame))) {
      say(node, place, false, now);
    }
  }
  note_queue(port, index, now);
}

// Returns whether a storm loses the packet: what leaves by a port in one, and what has come by it.
bool PacketWorker::loses_in_storm(Port& port, const Packet& packet, const PacketSwitch& node) {
  const auto is_dropping = [&](std::uint32_t number) {
    return number < node.dropping.size() && node.dropping[number];
  };
  if (!is_dropping(port.out) && !is_dropping(entries_[packet.position])) {
    return false;
  }
  count_storm_drop(port, packet);
  return true;
}

void PacketWorker::count_storm_drop(Port& port, const Packet& packet) {
  ++port.counters.drops;
  ++port.counters.storm_drops;
  loads_[port.node].held -= packet.wire;
}

// Finds a deadlock: links that are stopped, by PFC or for lack of credits, because of each other.
// An edge leads from a stopped port to each stopped port in whose queue packets wait that came by
// the first: they fill the buffer for which the first was stopped. Lanes are stopped one by one, so
// each lane of a port is such a port.
std::vector<LinkId> PacketEngine::deadlock() const {
  const std::vector<Port>& ports = fabric_.ports();
  DependencyGraph graph(static_cast<std::uint32_t>(ports.size()), LaneOptions::kLanes);
  const auto is_stopped = [&](std::uint32_t index, std::uint32_t lane) {
    const Port& port = ports[index];
    return port.lanes == kNoIndex ? port.is_stopped()
                                  : fabric_.lanes()[port.lanes].is_stopped(lane);
  };
  const auto vertex = [&](std::uint32_t index, std::uint32_t lane) {
    return graph.buffer(LinkId(index), ports[index].lanes == kNoIndex ? 0 : static_cast<int>(lane));
  };
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  const auto add_edges = [&](std::uint32_t index, const Ring<Packet>& queue) {
    for (std::uint32_t i = 0; i < queue.size(); ++i) {
      const std::uint32_t lane = fabric_.lane_of(queue.at(i).connection);
      const std::uint32_t before = fabric_.positions()[queue.at(i).position - 1];
      const std::pair edge(vertex(before, lane), vertex(index, lane));
      if (is_stopped(index, lane) && is_stopped(before, lane) && known.insert(edge).second) {
        edges.push_back(edge);
      }
    }
  };
  for (std::uint32_t index = 0; index < ports.size(); ++index) {
    const Port& port = ports[index];
    add_edges(index, port.queue);
    if (port.lanes != kNoIndex) {
      for (const LaneQueues::Lane& lane : fabric_.lanes()[port.lanes].lanes) {
        add_edges(index, lane.queue);
      }
    }
  }
  // Walks take the edge first that was found last.
  for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) {
    graph.add(edge->first, edge->second);
  }
  std::vector<LinkId> cycle = graph.find_cycle();  // Numbers of ports.
  for (LinkId& link : cycle) {
    link = LinkId(ports[link.value()].link);
  }
  return cycle;
}

}  // namespace trainyard
