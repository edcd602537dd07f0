// SPDX-License-Identifier: Apache-2.0
#include "support/naive_packets.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "hw/control/congestion_control.h"

namespace trainyard {

namespace {

struct NaivePacket {
  std::size_t connection = 0;
  std::uint32_t sequence = 0;  // Of an ACK, that of the packet that it answers.
  std::size_t message = 0;
  Bytes wire;
  std::size_t hop = 0;
  bool last = false;
  bool is_ack = false;
  bool is_marked = false;
  std::vector<IntHop> stamps;
};

// What has not been acknowledged.
struct InFlight {
  std::uint32_t sequence = 0;
  Bytes wire;
  SimTime time;
};

struct Sender {
  enum class State : std::uint8_t { Idle, InLine, Waiting, Blocked };
  std::deque<std::size_t> messages;  // Not sent completely; the front is being sent.
  Bytes sent;                        // Of the front.
  std::uint32_t sequence = 0;
  State state = State::Idle;
  SimTime next_start;  // No packet begins before.
  Bandwidth line;
  std::optional<ControlSettings> settings;
  std::optional<SenderControl> control;
  std::deque<InFlight> in_flight;
  std::uint64_t all_sent = 0;
  std::uint64_t all_acked = 0;
  int unanswered = 0;
  SimTime last_start;  // Of its last packet.
  Bytes last_wire;
  bool is_paused = false;
};

struct NaivePort {
  SimTime free_at;
  std::deque<NaivePacket> control;
  std::deque<NaivePacket> queue;
  std::deque<std::size_t> line;  // Connections that take turns.
  bool own_turn = false;
  std::uint64_t sent_bytes = 0;
  Bytes credits;  // That may still be sent, where links have credits.
};

// What happens to a packet at one instant, in order of `by`.
struct Arriving {
  std::uint32_t by = 0;  // 4 x the link, and 1 where the link ends the way of a packet.
  NaivePacket packet;
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
    const bool shares_rtt = control_traits(options).shares_rtt;
    SimTime longest;
    for (std::size_t i = 0; options.profile && i < paths.size(); ++i) {
      longest = paths[i].empty() ? longest : std::max(longest, rtt_of(paths[i]));
    }
    for (std::size_t i = 0; options.profile && i < paths.size(); ++i) {
      if (!paths[i].empty()) {
        set_up(senders_[i], paths[i], shares_rtt ? longest : rtt_of(paths[i]));
      }
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
      line_up(now);
      for (std::uint32_t link = 0; link < ports_.size(); ++link) {
        start(link, now);
      }
    }
    std::sort(run_.starts.begin(), run_.starts.end());
    return std::move(run_);
  }

 private:
  [[nodiscard]] Bytes extra() const {
    return control_traits(options_).telemetry != IntFormat::None ? kIntWireBytes : Bytes(0);
  }
  [[nodiscard]] Bytes full_wire() const {
    return wire_bytes(options_.framing, RdmaOpcode::SendOnly, options_.mtu) + extra();
  }
  [[nodiscard]] Bytes ack_wire() const {
    return wire_bytes(options_.framing, RdmaOpcode::Acknowledge, Bytes(0)) + extra();
  }
  // Fabrics of tests have links in pairs.
  [[nodiscard]] static LinkId back_of(LinkId link) { return LinkId(link.value() ^ 1U); }
  [[nodiscard]] std::vector<LinkId> way_of(const NaivePacket& packet) const {
    std::vector<LinkId> way = paths_[packet.connection];
    if (packet.is_ack) {
      std::reverse(way.begin(), way.end());
      for (LinkId& link : way) {
        link = back_of(link);
      }
    }
    return way;
  }

  // T of a path: that of a full packet, its ACK, and one packet more.
  [[nodiscard]] SimTime rtt_of(const std::vector<LinkId>& path) const {
    std::vector<LinkId> back(path.rbegin(), path.rend());
    for (LinkId& link : back) {
      link = back_of(link);
    }
    SimTime time;
    for (std::size_t hop = 0; hop < path.size(); ++hop) {
      time = there(path, hop, full_wire(), time);
    }
    const Bandwidth line = topology_.link(path.front()).spec.bandwidth;
    SimTime rtt = time + transfer_time(full_wire(), line);
    time = SimTime();
    for (std::size_t hop = 0; hop < back.size(); ++hop) {
      time = there(back, hop, ack_wire(), time);
    }
    return rtt + time;
  }

  void set_up(Sender& sender, const std::vector<LinkId>& path, SimTime rtt) {
    sender.line = topology_.link(path.front()).spec.bandwidth;
    sender.settings =
        options_.profile->settings({.line = sender.line, .base_rtt = rtt, .packet = full_wire()});
    sender.control.emplace(*sender.settings);
  }

  [[nodiscard]] int packets_for_an_ack() const {
    const auto* const timely = std::get_if<TimelyProfile>(&options_.profile->rules);
    if (timely == nullptr) {
      return 1;
    }
    return static_cast<int>((timely->settings.segment.count() + full_wire().count() - 1) /
                            full_wire().count());
  }

  // Messages that are sent at this instant: their connections wait for it.
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
      if (sender.state == Sender::State::Idle) {
        wait(message.connection, now);
      }
    }
  }

  // It joins the line at this instant, or when its pace lets it.
  void wait(std::size_t connection, SimTime now) {
    Sender& sender = senders_[connection];
    sender.state = Sender::State::Waiting;
    if (sender.next_start > now) {
      times_.insert(sender.next_start);
    }
  }

  // Connections that have waited for this instant join the line of their port, by message.
  void line_up(SimTime now) {
    std::vector<std::pair<std::size_t, std::size_t>> due;
    for (std::size_t i = 0; i < senders_.size(); ++i) {
      if (senders_[i].state == Sender::State::Waiting && senders_[i].next_start <= now) {
        due.emplace_back(senders_[i].messages.front(), i);
      }
    }
    std::sort(due.begin(), due.end());
    for (const auto& [message, i] : due) {
      senders_[i].state = Sender::State::InLine;
      ports_[paths_[i][0].value()].line.push_back(i);
    }
  }

  // Packets that reach a queue or an end at this instant, in the order of the links that they came
  // by.
  void take_arrivals(SimTime now) {
    auto& due = arrivals_[now];
    std::stable_sort(due.begin(), due.end(),
                     [](const auto& a, const auto& b) { return a.by < b.by; });
    for (const Arriving& arriving : due) {
      const NaivePacket& packet = arriving.packet;
      const std::vector<LinkId> way = way_of(packet);
      if (packet.hop == way.size()) {
        take_ack(packet, now);
      } else if (packet.is_ack) {
        ports_[way[packet.hop].value()].control.push_back(packet);
      } else {
        ports_[way[packet.hop].value()].queue.push_back(packet);
      }
    }
    arrivals_.erase(now);
  }

  void take_ack(const NaivePacket& ack, SimTime now) {
    Sender& sender = senders_[ack.connection];
    Bytes size;
    SimTime sent_at;
    while (!sender.in_flight.empty() && sender.in_flight.front().sequence <= ack.sequence) {
      size += sender.in_flight.front().wire;
      sent_at = sender.in_flight.front().time;
      sender.in_flight.pop_front();
    }
    sender.all_acked += static_cast<std::uint64_t>(size.count());
    const int hops = static_cast<int>(paths_[ack.connection].size()) - 1;
    sender.control->on_ack({.now = now,
                            .rtt = now - sent_at,
                            .host_delay = {},
                            .acked = sender.all_acked,
                            .next = sender.all_sent,
                            .size = size,
                            .is_marked = ack.is_marked,
                            .hops = hops,
                            .path = ack.stamps});
    repace(sender, now);
    if (sender.state == Sender::State::Blocked && fits(sender)) {
      wait(ack.connection, now);
    }
  }

  // A window below one packet paces by the last ACK what is not in line yet, and nothing any more
  // once it is one packet.
  static void repace(Sender& sender, SimTime now) {
    const bool pauses = sender.control->pauses();
    const bool waits =
        sender.state == Sender::State::Waiting || sender.state == Sender::State::InLine;
    if (pauses && !waits) {
      sender.next_start =
          sender.last_start + transfer_time(sender.last_wire, sender.control->rate(now));
    } else if (!pauses && sender.is_paused) {
      sender.next_start = std::min(sender.next_start, now);
    }
    sender.is_paused = pauses;
  }

  [[nodiscard]] bool fits(const Sender& sender) const {
    if (!sender.control || sender.in_flight.empty()) {
      return true;
    }
    const auto under_way = static_cast<std::int64_t>(sender.all_sent - sender.all_acked);
    return Bytes(under_way) + next_wire(sender) <= sender.control->window();
  }

  [[nodiscard]] Bytes next_wire(const Sender& sender) const {
    const Bytes left = traffic_.messages[sender.messages.front()].size - sender.sent;
    const bool is_first = sender.sent == Bytes(0) && options_.verb == RdmaVerb::Write;
    return wire_bytes(options_.framing, is_first ? RdmaOpcode::WriteOnly : RdmaOpcode::SendOnly,
                      std::min(left, options_.mtu)) +
           extra();
  }

  void start(std::uint32_t link, SimTime now) {
    NaivePort& port = ports_[link];
    if (port.free_at > now) {
      return;
    }
    if (!port.control.empty()) {
      const NaivePacket packet = port.control.front();
      port.control.pop_front();
      transmit(link, packet, now);
      return;
    }
    if (has_credits() && port.credits < largest()) {
      return;
    }
    while (!port.line.empty() && !fits(senders_[port.line.front()])) {
      senders_[port.line.front()].state = Sender::State::Blocked;
      port.line.pop_front();
    }
    if (!port.line.empty() && (port.own_turn || port.queue.empty())) {
      port.own_turn = false;
      send_own(link, now);
    } else if (!port.queue.empty()) {
      port.own_turn = true;
      NaivePacket packet = port.queue.front();
      port.queue.pop_front();
      pass_on(link, packet, now);
    }
  }

  // The connection at the head of the line begins a packet, and joins the end of the line if it
  // has more that it may send at once.
  void send_own(std::uint32_t link, SimTime now) {
    NaivePort& port = ports_[link];
    const std::size_t connection = port.line.front();
    port.line.pop_front();
    Sender& sender = senders_[connection];
    const NaivePacket packet = cut(connection);
    transmit(link, packet, now);
    if (sender.control) {
      sender.in_flight.push_back({.sequence = packet.sequence, .wire = packet.wire, .time = now});
      sender.all_sent += static_cast<std::uint64_t>(packet.wire.count());
      const Bandwidth rate = sender.control->rate(now);
      sender.control->on_sent(now, packet.wire);
      if (rate < sender.line) {
        sender.next_start = now + transfer_time(packet.wire, rate);
      }
      sender.last_start = now;
      sender.last_wire = packet.wire;
    }
    sender.state = Sender::State::Idle;
    if (sender.messages.empty()) {
      return;
    }
    if (!fits(sender)) {
      sender.state = Sender::State::Blocked;
    } else if (sender.next_start > now) {
      wait(connection, now);
    } else {
      sender.state = Sender::State::InLine;
      port.line.push_back(connection);
    }
  }

  // What a switch does to a packet that it begins to send: it marks it, and writes into it.
  void pass_on(std::uint32_t link, NaivePacket& packet, SimTime now) {
    constexpr Bytes kAroundFrame{20};
    const NaivePort& port = ports_[link];
    const bool is_switch =
        topology_.node(topology_.link(LinkId(link)).source).kind == NodeKind::Switch;
    Bytes queued;
    for (const NaivePacket& waiting : port.queue) {
      queued += waiting.wire - kAroundFrame;
    }
    const Bandwidth rate = topology_.link(LinkId(link)).spec.bandwidth;
    if (is_switch && options_.ecn != EcnPreset::Off &&
        queued > red_profile(options_.ecn, rate).kmin) {
      packet.is_marked = true;
    }
    if (is_switch) {
      packet.stamps.push_back({.rate = rate,
                               .time = now,
                               .sent_bytes = port.sent_bytes,
                               .queue = queued,
                               .port = link});
    }
    transmit(link, packet, now);
  }

  NaivePacket cut(std::size_t connection) {
    Sender& sender = senders_[connection];
    const Bytes size = traffic_.messages[sender.messages.front()].size;
    NaivePacket packet{.connection = connection,
                       .sequence = sender.sequence++,
                       .message = sender.messages.front(),
                       .wire = next_wire(sender),
                       .stamps = {}};
    sender.sent += std::min(size - sender.sent, options_.mtu);
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
                      options_.mtu) +
           extra();
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

  // When a packet that begins at `now` on this link of its way is at the next queue, or at its end.
  [[nodiscard]] SimTime there(const std::vector<LinkId>& way, std::size_t hop, Bytes wire,
                              SimTime now) const {
    const Link& record = topology_.link(way[hop]);
    const Node& node = topology_.node(record.target);
    const bool is_switch = node.kind == NodeKind::Switch;
    const SimTime end = now + time_on(way[hop], wire);
    if (hop + 1 == way.size()) {
      return end + record.spec.latency + (is_switch ? node.latency : SimTime());
    }
    SimTime left = end;
    if (!is_switch || options_.forwarding == Forwarding::CutThrough) {
      const SimTime header = now + time_on(way[hop], std::min(wire, Bytes(72)));
      left = std::max(header, end - time_on(way[hop + 1], wire));
    }
    return left + record.spec.latency + node.latency;
  }

  void transmit(std::uint32_t link, NaivePacket packet, SimTime now) {
    run_.starts.push_back({.time = now.picoseconds(),
                           .link = link,
                           .connection = static_cast<std::uint32_t>(packet.connection),
                           .sequence = packet.sequence + (packet.is_ack ? 1 : 0)});
    ports_[link].free_at = now + time_on(LinkId(link), packet.wire);
    ports_[link].sent_bytes += static_cast<std::uint64_t>(packet.wire.count());
    times_.insert(ports_[link].free_at);
    const std::vector<LinkId> way = way_of(packet);
    const SimTime arrival = there(way, packet.hop, packet.wire, now);
    if (!packet.is_ack) {
      ports_[link].credits = ports_[link].credits - packet.wire;
      if (packet.hop > 0) {
        const LinkId before = way[packet.hop - 1];
        give_back(before, packet.wire, ports_[link].free_at + topology_.link(before).spec.latency);
      }
    }
    ++packet.hop;
    const bool is_end = packet.hop == way.size();
    if (is_end && !packet.is_ack) {
      give_back(LinkId(link), packet.wire, arrival + topology_.link(LinkId(link)).spec.latency);
      if (packet.last) {
        run_.arrivals[packet.message] = arrival;
      }
      if (!options_.profile || !needs_answer(packet)) {
        return;
      }
      packet.is_ack = true;
      packet.wire = ack_wire();
      packet.hop = 0;
    }
    arrivals_[arrival].push_back({.by = 4 * link + (is_end ? 1U : 0U), .packet = packet});
    times_.insert(arrival);
  }

  [[nodiscard]] bool needs_answer(const NaivePacket& packet) {
    int& unanswered = senders_[packet.connection].unanswered;
    if (++unanswered < packets_for_an_ack() && !packet.last) {
      return false;
    }
    unanswered = 0;
    return true;
  }

  const Topology& topology_;
  const Traffic& traffic_;
  const std::vector<std::vector<LinkId>>& paths_;
  const PacketOptions& options_;
  std::vector<NaivePort> ports_;
  std::vector<Sender> senders_;
  std::set<SimTime> times_;
  std::map<SimTime, std::vector<Arriving>> arrivals_;
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
