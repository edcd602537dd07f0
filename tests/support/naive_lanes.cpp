// SPDX-License-Identifier: Apache-2.0
#include "support/naive_lanes.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "hw/switch/pfc.h"
#include "hw/switch/port_chooser.h"
#include "hw/switch/shared_buffer.h"
#include "network/packet/packet_adaptive.h"
#include "support/naive_lane_parts.h"

namespace trainyard {
namespace {

class LaneSimulation {
 public:
  LaneSimulation(const TestFabric& fabric, const Traffic& traffic, const NaiveWays& ways,
                 const std::vector<std::uint8_t>& lanes, const PacketOptions& options,
                 const LaneOptions& classes)
      : topology_(fabric.topology),
        traffic_(traffic),
        ways_(ways),
        lanes_(lanes),
        options_(options),
        classes_(classes),
        ports_(fabric.topology.link_count()),
        senders_(traffic.connections.size()) {
    run_.arrivals.resize(traffic.messages.size());
    for (NaiveLanePort& port : ports_) {
      port.scheduler.emplace(classes.strict, classes.quanta(largest().count()));
      for (NaiveLanePort::Lane& lane : port.lanes) {
        lane.credits = options.fabric_credits;
      }
    }
    for (std::uint32_t node = 0; node < topology_.node_count(); ++node) {
      const bool is_switch = topology_.node(NodeId(node)).kind == NodeKind::Switch;
      if (is_switch && (options.pfc || options.buffer > Bytes(0))) {
        set_up_switch(NodeId(node));
      }
      set_up_pauses(NodeId(node));
      if (is_switch && options.adaptive) {
        choosers_.emplace(NodeId(node),
                          PortChooser(*options.adaptive, chooser_seed(options.seed, NodeId(node))));
      }
    }
  }

  NaiveLanesRun run() {
    for (const TestMessage& message : traffic_.messages) {
      times_.insert(message.time);
    }
    while (!times_.empty()) {
      const SimTime now = *times_.begin();
      times_.erase(times_.begin());
      for (NaiveLanePort& port : ports_) {
        if (port.leaving > Bytes(0) && port.left_at <= now) {
          release(port, now);
        }
      }
      for (const NaiveLaneCredits& back : credits_[now]) {
        ports_[back.link].lanes.at(back.lane).credits += back.bytes;
      }
      take_arrivals(now);
      poll(now);
      send_messages(now);
      for (std::uint32_t link = 0; link < ports_.size(); ++link) {
        start(link, now);
      }
    }
    std::sort(run_.starts.begin(), run_.starts.end());
    return std::move(run_);
  }

 private:
  // Fabrics of tests have links in pairs.
  [[nodiscard]] static std::uint32_t back_of(std::uint32_t link) { return link ^ 1U; }
  [[nodiscard]] Bytes wire_of(Bytes payload) const {
    return wire_bytes(options_.framing, RdmaOpcode::SendOnly, payload);
  }
  [[nodiscard]] Bytes largest() const { return wire_of(options_.mtu); }
  [[nodiscard]] SimTime time_on(std::uint32_t link, Bytes wire) const {
    return transfer_time(wire, topology_.link(LinkId(link)).spec.bandwidth);
  }
  [[nodiscard]] std::uint32_t number_at(NodeId node, std::uint32_t out) const {
    const auto links = topology_.links_from(node);
    return static_cast<std::uint32_t>(std::ranges::find(links, LinkId(out)) - links.begin());
  }

  void set_up_pauses(NodeId node) {
    for (const LinkId link : topology_.links_from(node)) {
      NaiveLanePort& port = ports_[link.value()];
      for (const SlowHost& host : options_.slow_hosts) {
        if (host.node == node) {
          port.host.emplace(host.receiver);
          port.until = host.until;
        }
      }
      const bool leads_to_host = topology_.node(topology_.link(link).target).kind == NodeKind::Gpu;
      if (options_.watchdog && leads_to_host) {
        port.guard.emplace();
        times_.insert(options_.watchdog->poll);
      }
    }
  }
  [[nodiscard]] bool is_used(std::uint32_t lane) const { return options_.lanes || lane == 3; }

  // All watchdogs, as long as anything is to happen.
  void poll(SimTime now) {
    if (!options_.watchdog || now == SimTime() ||
        now.picoseconds() % options_.watchdog->poll.picoseconds() != 0) {
      return;
    }
    if (!times_.empty()) {
      times_.insert(now + options_.watchdog->poll);
    }
    for (NaiveLanePort& port : ports_) {
      if (!port.guard) {
        continue;
      }
      std::deque<NaiveLanePacket>& queue = port.lanes.at(3).queue;
      const auto event = port.guard->poll(*options_.watchdog, now, !queue.empty());
      if (event == PauseWatchdog::Event::Nothing) {
        continue;
      }
      const bool begins = event == PauseWatchdog::Event::Storm;
      run_.storms += begins ? 1 : 0;
      const bool forces = options_.watchdog->action == StormAction::Forward;
      (forces ? port.guard->forces : port.guard->drops) = begins;
      for (; begins && !forces && !queue.empty(); queue.pop_front()) {
        ++run_.drops;
        const BufferPlace place = place_of(queue.front());
        if (buffers_.at(node_of(port)).release(place, queue.front().wire - kLaneAround)) {
          say(node_of(port), place, false, now);
        }
      }
    }
  }

  void set_up_switch(NodeId node) {
    const auto links = topology_.links_from(node);
    SharedBuffer buffer({.size = options_.buffer}, static_cast<std::uint32_t>(links.size()),
                        LaneOptions::kLanes);
    for (std::uint32_t port = 0; port < links.size(); ++port) {
      for (std::uint32_t lane = 0; lane < LaneOptions::kLanes; ++lane) {
        if (!is_used(lane)) {
          continue;
        }
        if (options_.pfc && classes_.is_lossless(lane)) {
          buffer.set_ingress(
              port, lane,
              ingress_limits(topology_, LinkId(back_of(links[port].value())), largest(), options_));
        } else {
          buffer.set_egress(port, lane, options_.lossy_alpha_exponent);
        }
      }
    }
    buffers_.emplace(node, std::move(buffer));
  }

  void release(NaiveLanePort& port, SimTime now) {
    const NodeId node = node_of(port);
    if (buffers_.at(node).release(port.place, port.leaving)) {
      say(node, port.place, false, now);
    }
    port.leaving = Bytes(0);
  }
  [[nodiscard]] NodeId node_of(const NaiveLanePort& port) const {
    return topology_.link(LinkId(static_cast<std::uint32_t>(&port - ports_.data()))).source;
  }
  // A frame goes out by the link back.
  void say(NodeId node, const BufferPlace& place, bool stop, SimTime now) {
    const LinkId link = topology_.links_from(node)[place.in_port];
    ports_[link.value()].frames.push_back(
        {.lane = static_cast<std::uint8_t>(place.priority), .stop = stop});
    run_.pauses += stop ? 1 : 0;
    times_.insert(std::max(now, ports_[link.value()].free_at));
  }

  void take_arrivals(SimTime now) {
    auto& due = arrivals_[now];
    std::stable_sort(due.begin(), due.end(),
                     [](const auto& a, const auto& b) { return a.by < b.by; });
    for (const NaiveLaneArrival& arrival : due) {
      if (arrival.frame) {
        take_frame(*arrival.frame, ports_[arrival.stopped], now);
      } else if (arrival.is_at_host) {
        NaiveLanePort& port = ports_[arrival.stopped];
        if (port.host->on_packet(arrival.packet.wire - kLaneAround, now)) {
          port.frames.push_back({.stop = true, .is_of_host = true});
          ++run_.pauses;
        }
        if (port.host->is_paused()) {
          times_.insert(std::max(now, std::min(port.host->resume_time(), port.until)));
        }
      } else {
        NaiveLanePacket packet = arrival.packet;
        choose(packet, now);
        store(packet, now);
      }
    }
    arrivals_.erase(now);
  }

  void take_frame(const NaiveLaneFrame& frame, NaiveLanePort& port, SimTime now) {
    const bool was_paused = std::ranges::any_of(port.lanes, &NaiveLanePort::Lane::is_paused);
    for (std::uint32_t lane = 0; lane < LaneOptions::kLanes; ++lane) {
      const bool is_one = frame.is_of_host
                              ? !frame.stop || (is_used(lane) && classes_.is_lossless(lane))
                              : lane == frame.lane;
      port.lanes.at(lane).is_paused = is_one ? frame.stop : port.lanes.at(lane).is_paused;
    }
    const bool is_paused = std::ranges::any_of(port.lanes, &NaiveLanePort::Lane::is_paused);
    if (port.guard && is_paused != was_paused) {
      port.guard->changes.push_back(now);
    }
  }

  // The packet takes the way that its switch chooses, if there are several from there.
  void choose(NaiveLanePacket& packet, SimTime now) {
    std::map<LinkId, const std::vector<LinkId>*> next;
    for (const std::vector<LinkId>& way : ways_[packet.connection]) {
      if (std::equal(way.begin(), way.begin() + static_cast<std::ptrdiff_t>(packet.hop),
                     packet.path.begin())) {
        next.try_emplace(way[packet.hop], &way);
      }
    }
    if (next.size() < 2) {
      return;
    }
    std::vector<std::int64_t> queued;
    for (const auto& [link, way] : next) {
      std::int64_t bytes = 0;
      for (const NaiveLanePacket& waiting :
           ports_[link.value()].lanes.at(lanes_[packet.connection]).queue) {
        bytes += (waiting.wire - kLaneAround).count();
      }
      queued.push_back(bytes);
    }
    const NodeId node = topology_.link(packet.path[packet.hop]).source;
    const std::uint32_t chosen = choosers_.at(node).choose(queued, packet.connection, now);
    packet.path = *std::next(next.begin(), chosen)->second;
  }

  void store(const NaiveLanePacket& packet, SimTime now) {
    const std::uint8_t lane = lanes_[packet.connection];
    const LinkId out = packet.path[packet.hop];
    const NodeId node = topology_.link(out).source;
    if (buffers_.contains(node)) {
      const LinkId back(back_of(packet.path[packet.hop - 1].value()));
      for (const LinkId link : {out, back}) {
        if (ports_[link.value()].guard && ports_[link.value()].guard->drops) {
          ++run_.drops;
          return;
        }
      }
      const BufferPlace place = place_of(packet);
      const Admission admission = buffers_.at(node).admit(place, packet.wire - kLaneAround);
      if (!admission.accepted) {
        ++run_.drops;
        return;
      }
      if (admission.xoff) {
        say(node, place, true, now);
      }
    }
    ports_[out.value()].lanes.at(lane).queue.push_back(packet);
  }
  [[nodiscard]] BufferPlace place_of(const NaiveLanePacket& packet) const {
    const std::vector<LinkId>& path = packet.path;
    const NodeId node = topology_.link(path[packet.hop]).source;
    return {.in_port = number_at(node, back_of(path[packet.hop - 1].value())),
            .out_port = number_at(node, path[packet.hop].value()),
            .priority = lanes_[packet.connection]};
  }

  void send_messages(SimTime now) {
    for (std::size_t i = 0; i < traffic_.messages.size(); ++i) {
      const TestMessage& message = traffic_.messages[i];
      if (message.time != now) {
        continue;
      }
      NaiveLaneSender& sender = senders_[message.connection];
      sender.messages.push_back(i);
      if (!sender.in_line) {
        sender.in_line = true;
        ports_[ways_[message.connection][0][0].value()]
            .lanes.at(lanes_[message.connection])
            .line.push_back(message.connection);
      }
    }
  }

  void start(std::uint32_t link, SimTime now) {
    NaiveLanePort& port = ports_[link];
    if (port.free_at > now) {
      return;
    }
    if (port.host && port.host->is_paused() &&
        std::min(port.host->resume_time(), port.until) <= now) {
      port.host->resume();
      port.frames.push_back({.stop = false, .is_of_host = true});
    }
    if (!port.frames.empty()) {
      send_frame(link, now);
      return;
    }
    const bool is_forced = port.guard && port.guard->forces;
    std::uint8_t ready = 0;
    for (unsigned lane = 0; lane < LaneOptions::kLanes; ++lane) {
      const NaiveLanePort::Lane& record = port.lanes.at(lane);
      const bool has_any = !record.queue.empty() || !record.line.empty();
      const bool is_starved = options_.fabric_credits > Bytes(0) && record.credits < largest();
      const bool is_ready = has_any && (is_forced || !record.is_paused) && !is_starved;
      ready |= static_cast<std::uint8_t>((is_ready ? 1U : 0U) << lane);
    }
    const int picked = port.scheduler->pick(ready);
    if (picked == PriorityScheduler::kNone) {
      return;
    }
    NaiveLanePort::Lane& lane = port.lanes.at(static_cast<std::size_t>(picked));
    NaiveLanePacket packet;
    if (!lane.line.empty() && (lane.own_turn || lane.queue.empty())) {
      lane.own_turn = false;
      packet = cut(lane);
    } else {
      lane.own_turn = true;
      packet = lane.queue.front();
      lane.queue.pop_front();
      if (buffers_.contains(node_of(port))) {
        port.leaving = packet.wire - kLaneAround;
        port.left_at = now + time_on(link, packet.wire);
        port.place = place_of(packet);
      }
    }
    port.scheduler->sent(picked, packet.wire.count());
    transmit(link, packet, now);
  }

  // The connection at the head of the line cuts a packet, and goes to its end if it has more.
  NaiveLanePacket cut(NaiveLanePort::Lane& lane) {
    const std::size_t connection = lane.line.front();
    lane.line.pop_front();
    NaiveLaneSender& sender = senders_[connection];
    const Bytes size = traffic_.messages[sender.messages.front()].size;
    const Bytes payload = std::min(size - sender.sent, options_.mtu);
    NaiveLanePacket packet{.connection = connection,
                           .sequence = sender.sequence++,
                           .message = sender.messages.front(),
                           .wire = wire_of(payload),
                           .path = ways_[connection][0]};
    sender.sent += payload;
    if (sender.sent == size) {
      packet.last = true;
      sender.messages.pop_front();
      sender.sent = Bytes(0);
    }
    sender.in_line = !sender.messages.empty();
    if (sender.in_line) {
      lane.line.push_back(connection);
    }
    return packet;
  }

  void send_frame(std::uint32_t link, SimTime now) {
    NaiveLanePort& port = ports_[link];
    const NaiveLaneFrame frame = port.frames.front();
    port.frames.pop_front();
    const LinkSpec& spec = topology_.link(LinkId(link)).spec;
    port.free_at = now + time_on(link, kPfcWireBytes);
    times_.insert(port.free_at);
    const SimTime there = port.free_at + spec.latency + reaction_time(spec.bandwidth);
    arrivals_[there].push_back(
        {.by = 4 * link + 2, .frame = frame, .stopped = back_of(link), .packet = {}});
    times_.insert(there);
  }

  void transmit(std::uint32_t link, NaiveLanePacket packet, SimTime now) {
    run_.starts.push_back({.time = now.picoseconds(),
                           .link = link,
                           .connection = static_cast<std::uint32_t>(packet.connection),
                           .sequence = packet.sequence});
    const std::vector<LinkId>& path = packet.path;
    const SimTime end = now + time_on(link, packet.wire);
    ports_[link].free_at = end;
    times_.insert(end);
    if (ports_[link].guard) {
      ports_[link].guard->starts.push_back(now);
    }
    const Link& record = topology_.link(LinkId(link));
    const Node& node = topology_.node(record.target);
    const SimTime arrival = end + record.spec.latency;
    tell_host(link, packet, arrival);
    if (packet.hop > 0) {
      give_back(path[packet.hop - 1].value(), packet, end);
    }
    const std::uint8_t lane = lanes_[packet.connection];
    ports_[link].lanes.at(lane).credits = ports_[link].lanes.at(lane).credits - packet.wire;
    const bool is_lost = std::ranges::any_of(options_.failures, [&](const LinkFailure& failure) {
      const std::uint32_t failed = failure.link.value();
      return (failed == link || failed == back_of(link)) && arrival > failure.time;
    });
    if (is_lost || packet.hop + 1 == path.size()) {
      give_back(link, packet, arrival);
      if (!is_lost) {
        arrive(packet, arrival);
      }
      return;
    }
    SimTime left = end;
    if (node.kind != NodeKind::Switch || options_.forwarding == Forwarding::CutThrough) {
      const SimTime header = now + time_on(link, std::min(packet.wire, Bytes(72)));
      left = std::max(header, end - time_on(path[packet.hop + 1].value(), packet.wire));
    }
    ++packet.hop;
    const SimTime there = left + record.spec.latency + node.latency;
    arrivals_[there].push_back({.by = 4 * link, .frame = {}, .packet = packet});
    times_.insert(there);
  }

  // The packet has left the far end of the link at `now`.
  void give_back(std::uint32_t link, const NaiveLanePacket& packet, SimTime now) {
    const SimTime there = now + topology_.link(LinkId(link)).spec.latency;
    credits_[there].push_back(
        {.link = link, .lane = lanes_[packet.connection], .bytes = packet.wire});
    times_.insert(there);
  }

  void tell_host(std::uint32_t link, const NaiveLanePacket& packet, SimTime arrival) {
    for (const SlowHost& host : options_.slow_hosts) {
      const bool is_there = topology_.link(LinkId(link)).target == host.node;
      if (is_there && arrival >= host.from && arrival < host.until) {
        arrivals_[arrival].push_back({.by = 4 * link + 1,
                                      .frame = {},
                                      .stopped = back_of(link),
                                      .packet = packet,
                                      .is_at_host = true});
        times_.insert(arrival);
      }
    }
  }

  void arrive(const NaiveLanePacket& packet, SimTime now) {
    NaiveLaneSender& sender = senders_[packet.connection];
    if (packet.sequence == sender.expected || ways_[packet.connection].size() > 1) {
      sender.early.emplace(packet.sequence, packet);
    }
    for (auto next = sender.early.find(sender.expected); next != sender.early.end();
         next = sender.early.find(sender.expected)) {
      if (next->second.last) {
        run_.arrivals[next->second.message] = now;
      }
      sender.early.erase(next);
      ++sender.expected;
    }
  }

  const Topology& topology_;
  const Traffic& traffic_;
  const NaiveWays& ways_;
  const std::vector<std::uint8_t>& lanes_;
  const PacketOptions& options_;
  const LaneOptions& classes_;
  std::vector<NaiveLanePort> ports_;
  std::vector<NaiveLaneSender> senders_;
  std::map<NodeId, SharedBuffer> buffers_;
  std::map<NodeId, PortChooser> choosers_;
  std::set<SimTime> times_;
  std::map<SimTime, std::vector<NaiveLaneArrival>> arrivals_;
  std::map<SimTime, std::vector<NaiveLaneCredits>> credits_;
  NaiveLanesRun run_;
};

}  // namespace

NaiveLanesRun run_naive_lanes(const TestFabric& fabric, const Traffic& traffic,
                              const std::vector<std::vector<LinkId>>& paths,
                              const std::vector<std::uint8_t>& lanes, const PacketOptions& options,
                              const LaneOptions& classes) {
  NaiveWays ways;
  for (const std::vector<LinkId>& path : paths) {
    ways.push_back({path});
  }
  return run_naive_ways(fabric, traffic, ways, lanes, options, classes);
}

NaiveLanesRun run_naive_ways(const TestFabric& fabric, const Traffic& traffic,
                             const NaiveWays& ways, const std::vector<std::uint8_t>& lanes,
                             const PacketOptions& options, const LaneOptions& classes) {
  return LaneSimulation(fabric, traffic, ways, lanes, options, classes).run();
}

}  // namespace trainyard
