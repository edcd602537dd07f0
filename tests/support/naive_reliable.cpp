// SPDX-License-Identifier: Apache-2.0
#include "support/naive_reliable.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "hw/switch/shared_buffer.h"

namespace trainyard {
namespace {

struct LossyPacket {
  std::size_t connection = 0;
  std::uint32_t label = 0;  // In the trace.
  Bytes wire;
  std::size_t hop = 0;
  std::size_t way = 0;  // Which of the ways of its connection it takes.
  bool is_control = false;
  // Data.
  Psn number = 0;
  bool last = false;
  // ACKs.
  bool is_nak = false;
  Psn expected = 0;
};

// What reaches a queue or an end, and the order of what does so at one instant.
struct LossyArrival {
  std::uint32_t by = 0;
  LossyPacket packet;
};

struct LossyMessage {
  std::size_t index = 0;  // Of the traffic.
  Psn first = 0;
  Psn end = 0;
  Bytes size;
};

struct LossyWay {
  SimTime from;  // What begins before takes the way before.
  std::vector<LinkId> path;
  std::vector<LinkId> back;
};

struct LossyEnds {
  std::vector<LossyWay> ways;
  std::vector<LossyMessage> messages;
  Psn posted = 0;
  Psn sent = 0;
  std::size_t completed = 0;
  bool in_line = false;
  bool has_failed = false;
  SelectiveSettings selective;
  std::optional<GoBackNSender> sender;
  std::optional<GoBackNReceiver> receiver;
  std::optional<SelectiveSender> selective_sender;
  std::optional<SelectiveReceiver> selective_receiver;
  std::uint32_t answers = 0;
  std::uint32_t heard = 0;  // Answers before this one are no news.
  std::uint64_t timeouts = 0;
};

struct LossyPort {
  SimTime free_at;
  std::deque<LossyPacket> control;
  std::deque<LossyPacket> queue;
  std::deque<std::size_t> line;                                         // Take turns.
  std::set<std::tuple<SimTime, std::uint64_t, std::size_t>> newcomers;  // Not yet in line.
  bool own_turn = false;
  // The packet that is leaving, where a buffer holds it.
  Bytes leaving;
  SimTime left_at;
  std::uint32_t leaving_in = 0;
};

class LossySimulation {
 public:
  LossySimulation(const TestFabric& fabric, const Traffic& traffic,
                  const std::vector<std::vector<LinkId>>& paths, const PacketOptions& options,
                  const NaiveFailures& failures, const std::vector<NaiveReroute>& reroutes)
      : topology_(fabric.topology),
        traffic_(traffic),
        options_(options),
        ports_(fabric.topology.link_count()) {
    for (const auto& [link, time] : failures) {
      for (const LinkId id : {link, back_of(link)}) {
        const auto entry = failures_.try_emplace(id.value(), time).first;
        entry->second = std::min(entry->second, time);
      }
    }
    for (const std::vector<LinkId>& path : paths) {
      LossyEnds& ends = ends_.emplace_back();
      ends.ways.push_back(way_at(SimTime(), path));
      if (options.retransmission == Retransmission::GoBackN) {
        ends.sender.emplace();
        ends.receiver.emplace();
      } else {
        ends.selective = options.selective;
        if (ends.selective.window == 0) {
          ends.selective = with_time_for(ends.selective, round_trip_of(ends));
          ends.selective.window = window_of(ends);
        }
        ends.selective_sender.emplace(ends.selective);
        ends.selective_receiver.emplace(ends.selective);
      }
    }
    for (const NaiveReroute& reroute : reroutes) {
      ends_[reroute.connection].ways.push_back(way_at(reroute.from, reroute.path));
    }
    for (const NodeId node : switches()) {
      const auto count = static_cast<std::uint32_t>(topology_.links_from(node).size());
      auto& buffer =
          buffers_.try_emplace(node, SharedBufferSettings{.size = options.buffer}, count, 1U)
              .first->second;
      for (std::uint32_t port = 0; port < count; ++port) {
        buffer.set_egress(port, 0, 0);
      }
    }
    run_.arrivals.resize(traffic.messages.size());
  }

  NaiveReliableRun run() {
    for (const TestMessage& message : traffic_.messages) {
      times_.insert(message.time);
    }
    while (!times_.empty()) {
      const SimTime now = *times_.begin();
      times_.erase(times_.begin());
      release(now);
      reach_targets(now);
      take_arrivals(now);
      post(now);
      expire(now);
      for (std::uint32_t link = 0; link < ports_.size(); ++link) {
        while (start(link, now)) {
        }
      }
    }
    for (const LossyEnds& ends : ends_) {
      run_.resent += static_cast<std::uint64_t>(ends.sender ? ends.sender->resent()
                                                            : ends.selective_sender->resent());
      run_.timeouts += ends.timeouts;
      run_.failures += has_failed(ends) ? 1 : 0;
    }
    std::sort(run_.starts.begin(), run_.starts.end());
    return std::move(run_);
  }

 private:
  [[nodiscard]] LossyWay way_at(SimTime from, const std::vector<LinkId>& path) const {
    LossyWay way{.from = from, .path = path, .back = {}};
    for (auto link = path.rbegin(); link != path.rend(); ++link) {
      way.back.push_back(back_of(*link));
    }
    return way;
  }
  // Which way what begins at `now` takes.
  [[nodiscard]] static std::size_t way_now(const LossyEnds& ends, SimTime now) {
    std::size_t way = ends.ways.size() - 1;
    while (ends.ways[way].from > now) {
      --way;
    }
    return way;
  }
  [[nodiscard]] const std::vector<LinkId>& way_of(const LossyPacket& packet) const {
    const LossyWay& way = ends_[packet.connection].ways[packet.way];
    return packet.is_control ? way.back : way.path;
  }
  [[nodiscard]] LinkId back_of(LinkId id) const {
    const Link& link = topology_.link(id);
    for (const LinkId other : topology_.links_from(link.target)) {
      if (topology_.link(other).target == link.source) {
        return other;
      }
    }
    CHECK(false, "a link without one back");
  }

  [[nodiscard]] std::vector<NodeId> switches() const {
    std::vector<NodeId> found;
    for (std::uint32_t node = 0; node < topology_.node_count(); ++node) {
      if (options_.buffer > Bytes(0) && topology_.node(NodeId(node)).kind == NodeKind::Switch) {
        found.emplace_back(node);
      }
    }
    return found;
  }

  [[nodiscard]] std::uint32_t number_of(LinkId out) const {
    std::uint32_t number = 0;
    for (const LinkId link : topology_.links_from(topology_.link(out).source)) {
      if (link == out) {
        return number;
      }
      ++number;
    }
    CHECK(false, "a link of another node");
  }

  [[nodiscard]] SimTime time_on(LinkId link, Bytes wire) const {
    return transfer_time(wire, topology_.link(link).spec.bandwidth);
  }
  [[nodiscard]] SimTime latency_after(LinkId id) const {
    const Link& link = topology_.link(id);
    return link.spec.latency + topology_.node(link.target).latency;
  }

  [[nodiscard]] Bytes full_wire() const {
    return wire_bytes(options_.framing, RdmaOpcode::SendOnly, options_.mtu);
  }
  [[nodiscard]] Bytes ack_wire() const {
    return wire_bytes(options_.framing, RdmaOpcode::Acknowledge, Bytes(0));
  }

  // Packets of a full round trip on idle links.
  [[nodiscard]] std::int64_t window_of(const LossyEnds& ends) const {
    // Hosts have no latency of their own in these fabrics.
    const std::int64_t packet = time_on(ends.ways[0].path.front(), full_wire()).picoseconds();
    return (round_trip_of(ends).picoseconds() + packet - 1) / packet;
  }
  [[nodiscard]] SimTime round_trip_of(const LossyEnds& ends) const {
    SimTime time;
    for (const LinkId link : ends.ways[0].path) {
      time += time_on(link, full_wire()) + latency_after(link);
    }
    for (const LinkId link : ends.ways[0].back) {
      time += time_on(link, ack_wire()) + latency_after(link);
    }
    return time;
  }

  // --- The source.

  [[nodiscard]] bool can_send(const LossyEnds& ends) const {
    return ends.sender ? ends.sender->can_send(options_.retry)
                       : ends.selective_sender->can_send(ends.selective);
  }
  [[nodiscard]] static bool has_failed(const LossyEnds& ends) {
    return ends.sender ? ends.sender->has_failed() : ends.selective_sender->has_failed();
  }
  [[nodiscard]] static const LossyMessage& message_of(const LossyEnds& ends, Psn number) {
    const LossyMessage* found = &ends.messages.front();
    for (const LossyMessage& message : ends.messages) {
      found = message.first <= number ? &message : found;
    }
    return *found;
  }

  void note_deadline(const LossyEnds& ends) {
    const SimTime deadline =
        ends.sender ? ends.sender->deadline() : ends.selective_sender->deadline();
    if (deadline != SimTime::max()) {
      times_.insert(deadline);
    }
  }

  void join(std::size_t id, SimTime now) {
    LossyEnds& ends = ends_[id];
    note_deadline(ends);
    if (!ends.in_line && can_send(ends)) {
      ends.in_line = true;
      ports_[ends.ways[0].path[0].value()].newcomers.insert(
          {now, message_of(ends, ends.sent).index, id});
    }
  }

  void post(SimTime now) {
    for (std::size_t i = 0; i < traffic_.messages.size(); ++i) {
      const TestMessage& message = traffic_.messages[i];
      if (message.time != now) {
        continue;
      }
      LossyEnds& ends = ends_[message.connection];
      const std::int64_t packets = std::max<std::int64_t>(
          1, (message.size.count() + options_.mtu.count() - 1) / options_.mtu.count());
      ends.messages.push_back({.index = i,
                               .first = ends.posted,
                               .end = ends.posted + static_cast<Psn>(packets),
                               .size = message.size});
      ends.posted += static_cast<Psn>(packets);
      if (ends.sender) {
        ends.sender->post(packets);
      } else {
        ends.selective_sender->post(packets);
      }
    }
    for (std::size_t i = 0; i < traffic_.messages.size(); ++i) {
      if (traffic_.messages[i].time == now) {
        join(traffic_.messages[i].connection, now);
      }
    }
  }

  void expire(SimTime now) {
    for (std::size_t id = 0; id < ends_.size(); ++id) {
      LossyEnds& ends = ends_[id];
      if (ends.sender && ends.sender->deadline() == now) {
        ends.sender->on_timeout(options_.retry);
      } else if (!ends.sender && ends.selective_sender->deadline() == now) {
        ends.selective_sender->on_timeout(ends.selective);
      } else {
        continue;
      }
      ++ends.timeouts;
      join(id, now);
    }
  }

  void take_ack(const LossyPacket& packet, SimTime now) {
    LossyEnds& ends = ends_[packet.connection];
    if (!ends.sender) {
      if (packet.label < ends.heard) {
        return;  // It was overtaken, by another way.
      }
      ends.heard = packet.label + 1;
    }
    if (ends.sender && packet.is_nak) {
      ends.sender->on_nak(options_.retry, packet.expected, now);
    } else if (ends.sender) {
      ends.sender->on_ack(options_.retry, packet.expected, now);
    } else if (packet.is_nak) {
      ends.selective_sender->on_nack(ends.selective, packet.expected, packet.number, now);
    } else {
      ends.selective_sender->on_ack(ends.selective, packet.expected, now);
    }
    join(packet.connection, now);
  }

  LossyPacket cut(std::size_t id, SimTime now) {
    LossyEnds& ends = ends_[id];
    const Psn number = ends.sender ? ends.sender->send(options_.retry, now)
                                   : ends.selective_sender->send(ends.selective, now);
    ends.sent = std::max(ends.sent, number + 1);
    const LossyMessage& message = message_of(ends, number);
    const bool is_first = number == message.first;
    const auto before = static_cast<std::int64_t>(number - message.first);
    const Bytes payload = std::min(message.size - options_.mtu * before, options_.mtu);
    const bool is_write = options_.verb == RdmaVerb::Write;
    note_deadline(ends);
    return {.connection = id,
            .label = static_cast<std::uint32_t>(number),
            .wire = wire_bytes(options_.framing,
                               is_write && is_first ? RdmaOpcode::WriteOnly : RdmaOpcode::SendOnly,
                               payload),
            .way = way_now(ends, now),
            .number = number,
            .last = number + 1 == message.end};
  }

  // --- The target.

  void reach_targets(SimTime now) {
    for (const auto& [link, packet] : deliveries_[now]) {
      LossyEnds& ends = ends_[packet.connection];
      LossyPacket ack{.connection = packet.connection,
                      .wire = ack_wire(),
                      .way = way_now(ends, now),
                      .is_control = true,
                      .number = packet.number};
      bool is_sent = true;
      if (ends.receiver) {
        const Receipt receipt =
            ends.receiver->on_packet(packet.number, packet.last, options_.packets_per_ack);
        is_sent = receipt.reply != Receipt::Reply::None;
        ack.is_nak = receipt.reply == Receipt::Reply::Nak;
        ack.expected = receipt.expected;
        ack.label = static_cast<std::uint32_t>(receipt.expected);
      } else {
        const auto answer = ends.selective_receiver->on_packet(packet.number);
        ack.is_nak = answer.is_nack;
        ack.expected = answer.expected;
        ack.label = ends.answers++;
      }
      while (
          ends.completed < ends.messages.size() &&
          ends.messages[ends.completed].end <=
              (ends.receiver ? ends.receiver->expected() : ends.selective_receiver->expected())) {
        run_.arrivals[ends.messages[ends.completed++].index] = now;
      }
      if (is_sent) {
        arrivals_[now].push_back({.by = 4 * link + 1, .packet = ack});
      }
    }
    deliveries_.erase(now);
  }

  // --- Ports.

  void release(SimTime now) {
    for (std::uint32_t link = 0; link < ports_.size(); ++link) {
      LossyPort& port = ports_[link];
      if (port.leaving > Bytes(0) && port.left_at == now) {
        buffers_.at(topology_.link(LinkId(link)).source)
            .release({.in_port = port.leaving_in, .out_port = number_of(LinkId(link))},
                     port.leaving);
        port.leaving = Bytes(0);
      }
    }
  }

  void take_arrivals(SimTime now) {
    auto& due = arrivals_[now];
    std::stable_sort(due.begin(), due.end(),
                     [](const auto& a, const auto& b) { return a.by < b.by; });
    for (const LossyArrival& arrival : due) {
      const LossyPacket& packet = arrival.packet;
      const std::vector<LinkId>& way = way_of(packet);
      if (packet.hop == way.size()) {
        take_ack(packet, now);
        continue;
      }
      const LinkId out = way[packet.hop];
      LossyPort& port = ports_[out.value()];
      if (packet.is_control) {
        port.control.push_back(packet);
        continue;
      }
      const auto buffer = buffers_.find(topology_.link(out).source);
      if (buffer == buffers_.end() ||
          buffer->second
              .admit(
                  {.in_port = number_of(back_of(way[packet.hop - 1])), .out_port = number_of(out)},
                  frame_of(packet))
              .accepted) {
        port.queue.push_back(packet);
      } else {
        ++run_.drops;
      }
    }
    arrivals_.erase(now);
  }

  // Preamble and gap are not stored.
  [[nodiscard]] static Bytes frame_of(const LossyPacket& packet) { return packet.wire - Bytes(20); }

  // Whether something happened, so that the port is to be asked again.
  bool start(std::uint32_t link, SimTime now) {
    LossyPort& port = ports_[link];
    if (port.free_at > now) {
      return false;
    }
    if (!port.control.empty()) {
      transmit(link, port.control.front(), now);
      port.control.pop_front();
      return true;
    }
    const bool has_own = !port.line.empty() || !port.newcomers.empty();
    if (has_own && (port.own_turn || port.queue.empty())) {
      port.own_turn = false;
      for (const auto& [time, order, id] : port.newcomers) {
        port.line.push_back(id);
      }
      port.newcomers.clear();
      const std::size_t id = port.line.front();
      port.line.pop_front();
      ends_[id].in_line = false;
      if (can_send(ends_[id])) {
        transmit(link, cut(id, now), now);
        if (can_send(ends_[id])) {
          ends_[id].in_line = true;
          port.line.push_back(id);
        }
      }
      return true;
    }
    if (port.queue.empty()) {
      return false;
    }
    port.own_turn = true;
    const LossyPacket packet = port.queue.front();
    port.queue.pop_front();
    if (buffers_.contains(topology_.link(LinkId(link)).source)) {
      port.leaving = frame_of(packet);
      port.left_at = now + time_on(LinkId(link), packet.wire);
      port.leaving_in = number_of(back_of(way_of(packet)[packet.hop - 1]));
    }
    transmit(link, packet, now);
    return true;
  }

  // Whether the link loses a packet, the last bit of which would be at its end at `arrival`.
  bool loses(std::uint32_t link, const LossyPacket& packet, SimTime arrival) {
    const auto failure = failures_.find(link);
    if (failure != failures_.end() && arrival > failure->second) {
      ++run_.link_down;
      return true;
    }
    if (options_.bit_error_rate <= 0.0) {
      return false;
    }
    RandomStream& stream =
        streams_.try_emplace(link, options_.seed, "bit errors of link " + std::to_string(link))
            .first->second;
    const double bits = 8.0 * static_cast<double>(frame_of(packet).count());
    const bool is_lost =
        stream.uniform() < -std::expm1(bits * std::log1p(-options_.bit_error_rate));
    run_.bit_errors += is_lost ? 1 : 0;
    return is_lost;
  }

  void transmit(std::uint32_t link, LossyPacket packet, SimTime now) {
    run_.starts.push_back({.time = now.picoseconds(),
                           .link = link,
                           .connection = static_cast<std::uint32_t>(packet.connection),
                           .sequence = packet.label});
    const Link& record = topology_.link(LinkId(link));
    const SimTime end = now + time_on(LinkId(link), packet.wire);
    ports_[link].free_at = end;
    times_.insert(end);
    if (loses(link, packet, end + record.spec.latency)) {
      return;
    }
    const bool is_switch = topology_.node(record.target).kind == NodeKind::Switch;
    const std::vector<LinkId>& way = way_of(packet);
    ++packet.hop;
    SimTime there =
        end + record.spec.latency + (is_switch ? topology_.node(record.target).latency : SimTime());
    if (packet.hop < way.size()) {
      SimTime left = end;
      if (!is_switch || options_.forwarding == Forwarding::CutThrough) {
        const SimTime header = now + time_on(LinkId(link), std::min(packet.wire, Bytes(72)));
        left = std::max(header, end - time_on(way[packet.hop], packet.wire));
      }
      there = left + latency_after(LinkId(link));
      arrivals_[there].push_back({.by = 4 * link, .packet = packet});
    } else if (packet.is_control) {
      arrivals_[there].push_back({.by = 4 * link + 1, .packet = packet});
    } else {
      deliveries_[there].emplace_back(link, packet);
    }
    times_.insert(there);
  }

  const Topology& topology_;
  const Traffic& traffic_;
  const PacketOptions& options_;
  std::vector<LossyPort> ports_;
  std::vector<LossyEnds> ends_;
  std::map<NodeId, SharedBuffer> buffers_;
  std::map<std::uint32_t, SimTime> failures_;
  std::map<std::uint32_t, RandomStream> streams_;
  std::set<SimTime> times_;
  std::map<SimTime, std::vector<LossyArrival>> arrivals_;
  std::map<SimTime, std::vector<std::pair<std::uint32_t, LossyPacket>>> deliveries_;
  NaiveReliableRun run_;
};

}  // namespace

NaiveReliableRun run_naive_reliable(const TestFabric& fabric, const Traffic& traffic,
                                    const std::vector<std::vector<LinkId>>& paths,
                                    const PacketOptions& options, const NaiveFailures& failures,
                                    const std::vector<NaiveReroute>& reroutes) {
  return LossySimulation(fabric, traffic, paths, options, failures, reroutes).run();
}

}  // namespace trainyard
