// SPDX-License-Identifier: Apache-2.0
#include "support/naive_packets.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

namespace trainyard {

namespace {

struct NaivePacket {
  std::size_t connection = 0;
  std::uint32_t sequence = 0;
  std::size_t message = 0;
  Bytes wire;
  std::size_t hop = 0;
  bool last = false;
};

struct Sender {
  std::deque<std::size_t> messages;  // Not sent completely; the front is being sent.
  Bytes sent;                        // Of the front.
  std::uint32_t sequence = 0;
  bool in_line = false;
};

struct NaivePort {
  SimTime free_at;
  std::deque<NaivePacket> queue;
  std::deque<std::size_t> line;  // Connections that take turns.
  bool own_turn = false;
  Bytes credits;  // That may still be sent, where links have credits.
};

class NaiveSimulation {
 public:
  NaiveSimulation(const TestFabric& fabric, const Traffic& traffic,
                  const std::vector<std::vector<LinkId>>& paths, const PacketOptions& options)
      : topology_(fabric.topology),
        traffic_(traffic),
        paths_(paths),
        options_(options),
        ports_(fabric.topology.link_count()),
        senders_(traffic.connections.size()) {
    run_.arrivals.resize(traffic.messages.size());
    for (NaivePort& port : ports_) {
      port.credits = options.fabric_credits;
    }
  }

  NaivePacketRun run() {
    for (std::size_t i = 0; i < traffic_.messages.size(); ++i) {
      times_.insert(traffic_.messages[i].time);
    }
    while (!times_.empty()) {
      const SimTime now = *times_.begin();
      times_.erase(times_.begin());
      for (const auto& [link, bytes] : returns_[now]) {
        ports_[link].credits += bytes;
      }
      returns_.erase(now);
      send_messages(now);
      take_arrivals(now);
      for (std::uint32_t link = 0; link < ports_.size(); ++link) {
        start(link, now);
      }
    }
    std::sort(run_.starts.begin(), run_.starts.end());
    return std::move(run_);
  }

 private:
  // Messages that are sent at this instant, in their order: their connections join the line.
  void send_messages(SimTime now) {
    for (std::size_t i = 0; i < traffic_.messages.size(); ++i) {
      const TestMessage& message = traffic_.messages[i];
      if (message.time != now) {
        continue;
      }
      if (paths_[message.connection].empty()) {
        run_.arrivals[i] = now;
        continue;
      }
      Sender& sender = senders_[message.connection];
      sender.messages.push_back(i);
      if (!sender.in_line) {
        sender.in_line = true;
        ports_[paths_[message.connection][0].value()].line.push_back(message.connection);
      }
    }
  }

  // Packets that reach a queue at this instant, in the order of the links that they came by.
  void take_arrivals(SimTime now) {
    auto& due = arrivals_[now];
    std::stable_sort(due.begin(), due.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [from, packet] : due) {
      ports_[paths_[packet.connection][packet.hop].value()].queue.push_back(packet);
    }
    arrivals_.erase(now);
  }

  void start(std::uint32_t link, SimTime now) {
    NaivePort& port = ports_[link];
    if (port.free_at > now || (port.queue.empty() && port.line.empty())) {
      return;
    }
    if (has_credits() && port.credits < largest()) {
      return;
    }
    NaivePacket packet;
    if (!port.line.empty() && (port.own_turn || port.queue.empty())) {
      port.own_turn = false;
      packet = cut(port.line.front());
      Sender& sender = senders_[port.line.front()];
      if (!sender.messages.empty()) {
        port.line.push_back(port.line.front());
      } else {
        sender.in_line = false;
      }
      port.line.pop_front();
    } else {
      port.own_turn = true;
      packet = port.queue.front();
      port.queue.pop_front();
    }
    transmit(link, packet, now);
  }

  NaivePacket cut(std::size_t connection) {
    Sender& sender = senders_[connection];
    const Bytes size = traffic_.messages[sender.messages.front()].size;
    const Bytes payload = std::min(size - sender.sent, options_.mtu);
    const bool is_first = sender.sent == Bytes(0);
    const bool is_write = options_.verb == RdmaVerb::Write;
    NaivePacket packet{
        .connection = connection,
        .sequence = sender.sequence++,
        .message = sender.messages.front(),
        .wire = wire_bytes(options_.framing,
                           is_write && is_first ? RdmaOpcode::WriteOnly : RdmaOpcode::SendOnly,
                           payload)};
    sender.sent += payload;
    if (sender.sent == size) {
      packet.last = true;
      sender.messages.pop_front();
      sender.sent = Bytes(0);
    }
    return packet;
  }

  [[nodiscard]] bool has_credits() const { return options_.fabric_credits > Bytes(0); }
  [[nodiscard]] Bytes largest() const {
    const bool is_write = options_.verb == RdmaVerb::Write;
    return wire_bytes(options_.framing, is_write ? RdmaOpcode::WriteOnly : RdmaOpcode::SendOnly,
                      options_.mtu);
  }
  // The sender of `link` has room for them again at `time`.
  void give_back(LinkId link, Bytes bytes, SimTime time) {
    if (has_credits()) {
      returns_[time].emplace_back(link.value(), bytes);
      times_.insert(time);
    }
  }

  [[nodiscard]] SimTime time_on(LinkId link, Bytes wire) const {
    return transfer_time(wire, topology_.link(link).spec.bandwidth);
  }

  void transmit(std::uint32_t link, NaivePacket packet, SimTime now) {
    run_.starts.push_back({.time = now.picoseconds(),
                           .link = link,
                           .connection = static_cast<std::uint32_t>(packet.connection),
                           .sequence = packet.sequence});
    const Link& record = topology_.link(LinkId(link));
    const SimTime end = now + time_on(LinkId(link), packet.wire);
    ports_[link].free_at = end;
    times_.insert(end);
    const Node& node = topology_.node(record.target);
    const bool is_switch = node.kind == NodeKind::Switch;
    const std::vector<LinkId>& path = paths_[packet.connection];
    ports_[link].credits = ports_[link].credits - packet.wire;
    if (packet.hop > 0) {
      const LinkId before = path[packet.hop - 1];
      give_back(before, packet.wire, end + topology_.link(before).spec.latency);
    }
    ++packet.hop;
    if (packet.hop == path.size()) {
      const SimTime there = end + record.spec.latency + (is_switch ? node.latency : SimTime());
      if (packet.last) {
        run_.arrivals[packet.message] = there;
      }
      give_back(LinkId(link), packet.wire, there + record.spec.latency);
      return;
    }
    SimTime left = end;
    if (!is_switch || options_.forwarding == Forwarding::CutThrough) {
      const SimTime header = now + time_on(LinkId(link), std::min(packet.wire, Bytes(72)));
      left = std::max(header, end - time_on(path[packet.hop], packet.wire));
    }
    const SimTime there = left + record.spec.latency + node.latency;
    arrivals_[there].emplace_back(link, packet);
    times_.insert(there);
  }

  const Topology& topology_;
  const Traffic& traffic_;
  const std::vector<std::vector<LinkId>>& paths_;
  const PacketOptions& options_;
  std::vector<NaivePort> ports_;
  std::vector<Sender> senders_;
  std::set<SimTime> times_;
  std::map<SimTime, std::vector<std::pair<std::uint32_t, NaivePacket>>> arrivals_;
  std::map<SimTime, std::vector<std::pair<std::uint32_t, Bytes>>> returns_;
  NaivePacketRun run_;
};

}  // namespace

NaivePacketRun run_naive_packets(const TestFabric& fabric, const Traffic& traffic,
                                 const std::vector<std::vector<LinkId>>& paths,
                                 const PacketOptions& options) {
  return NaiveSimulation(fabric, traffic, paths, options).run();
}

}  // namespace trainyard
