// SPDX-License-Identifier: Apache-2.0
// Packets and flows in one run: the messages that matter run as packets, all others as flows.
//
// Both engines know all links. Where both have traffic they meet, without a clock of their own:
// - Each connection that has a message under way as packets is a guest of the flow engine: it takes
//   part in the max-min sharing as one flow, so that flows leave it what a flow would get.
// - What flows take of a link, a constant from one solve to the next, is gone for packets: the port
//   has the rest of its rate, from the next window of the packet engine on, and never less than
//   1/64 of it, so that ACKs and pauses pass where flows take all.
// - Packets may want less than that share: congestion control holds them back, or a queue that
//   another one fills. Every `interval` the guest is limited to half as much again as its
//   connection sent since the last time, unless that was 7/8 of its share or more, and flows get
//   what is left over.
// So the rates of both are never more than that of the link, but for that 1/64, for the packet
// that is on the line when a rate changes, and for the window in which it does.
//
// A connection keeps to one engine while it has messages under way. docs/models/packet.md says what
// this leaves out, docs/accuracy/packet-validation.md by how much it is off.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "network/contract/network.h"
#include "network/engines/mixed_options.h"
#include "network/flow/flow.h"
#include "network/packet/packet.h"
#include "network/packet/packet_options.h"

namespace trainyard {

class MixedNetwork final : public Network, private EventHandler, private FlowWatcher {
 public:
  // The first two must outlive the network. Throws ConfigError for what does not go together.
  MixedNetwork(Simulator& simulator, Routing& routing, const PacketOptions& packet,
               MixedOptions mixed);

  // Says what connections are for that are made from now on (NewConnection::purpose).
  void set_purpose(std::string_view purpose) { purpose_ = purpose; }
  ConnectionId connect(const ConnectionSpec& spec) override;
  void send(ConnectionId connection, Bytes size, EventHandler& done, std::uint64_t token) override;
  // Returns when the last message of packets was complete: the present may be that of an exchange
  // after the end.
  [[nodiscard]] SimTime quiet_time() const override { return last_end_; }
  void reserve(std::size_t connections) override { connections_.reserve(connections); }
  [[nodiscard]] NetworkStats stats() const override;
  [[nodiscard]] std::vector<LinkUse> link_use() const override;
  // Counters and samples of what ran as packets.
  [[nodiscard]] std::optional<std::vector<PortCounters>> port_counters() const override {
    return packets_.port_counters();
  }
  [[nodiscard]] std::optional<ConnectionCounters> connection_counters(
      ConnectionId connection) const override;
  [[nodiscard]] std::optional<PacketSamples> samples() const override;
  [[nodiscard]] std::optional<std::string> complaint() const override {
    return packets_.complaint();
  }

  [[nodiscard]] const MixedStats& mixed_stats() const { return mixed_stats_; }
  // The parts, for tests: what flows take of each link, and the rates of ports.
  [[nodiscard]] const FlowNetwork& flows() const { return flows_; }
  [[nodiscard]] PacketNetwork& packets() { return packets_; }

 private:
  struct Connection {
    ConnectionSpec spec;
    std::vector<LinkId> path;
    bool is_chosen = false;
    bool is_decided = false;  // The messages under way have their engine.
    bool runs_as_packets = false;
    bool is_present = false;  // It is a guest of the flow engine now.
    bool is_listed = false;   // It is in active_.
    std::uint32_t under_way = 0;
    // The engines know it by these numbers, once a message needs them.
    std::optional<ConnectionId> flow = {};
    std::optional<ConnectionId> packet = {};
    std::uint32_t guest = 0;
    std::int64_t posted = 0;  // All bytes that were given to packets.
    std::int64_t sent = 0;    // The part of `posted` that had been sent at the last look.
    SimTime looked = {};      // Time of the last look, or of the first message if it came later.
    FlowRate limit = kUnlimited;
  };
  struct Message {
    std::uint32_t connection;
    Bytes size;
    EventHandler* done;
    std::uint64_t token;
  };
  static constexpr FlowRate kUnlimited = ~FlowRate{0};

  void on_event(std::uint64_t token) override;
  void on_taken(LinkId link, FlowRate rate) override;
  void begin(const Message& message);
  void begin_as_packets(const Message& message);
  void end(std::uint64_t slot);
  [[nodiscard]] bool is_crowded(const Connection& connection) const;
  void connect_packets(std::uint32_t index);
  bool set_port(LinkId link, FlowRate taken);
  void set_present(Connection& connection, bool is_present);
  void count_flows_met(const Connection& connection);
  void exchange();
  void look_at(Connection& connection);
  void limit(Connection& connection, FlowRate max);
  [[nodiscard]] std::int64_t sent_by(const Connection& connection) const;
  [[nodiscard]] bool has_queue(const Connection& connection) const;
  [[nodiscard]] std::uint64_t take_slot(const Message& message);

  Simulator& simulator_;
  Routing& routing_;
  MixedOptions options_;
  bool sends_again_;
  std::string purpose_;
  FlowNetwork flows_;
  PacketNetwork packets_;
  std::vector<Connection> connections_;
  std::vector<std::uint32_t> of_packets_;  // Connection by its number in the packet engine.
  // Connections that had packets under way since the last exchange.
  std::vector<std::uint32_t> active_;
  std::vector<std::uint32_t> guests_;  // Those that are present, by link.
  std::vector<Message> messages_;  // Under way, by slot, where the engines tell us of their end.
  std::vector<std::uint64_t> free_;
  std::vector<Message> begun_;         // Sent at this instant, where crowds count.
  std::vector<std::uint32_t> crowds_;  // Connections with messages under way, by link.
  bool is_exchange_due_ = false;
  SimTime last_end_;
  MixedStats mixed_stats_;
};

}  // namespace trainyard
