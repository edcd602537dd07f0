// SPDX-License-Identifier: Apache-2.0
// The network as everything above sees it: connections, messages, completions.
//
// A connection is a FIFO of messages between two nodes, as an RDMA queue pair or a channel between
// two GPUs is: its route is resolved once, its messages follow one another, and different
// connections share links. The contract, the same at every fidelity:
// - a completion runs as an event at the simulated time at which the last byte is at the target,
//   never inside send();
// - messages of one connection are carried in the order of send(), one at a time, and the latency
//   of one overlaps with the next: the source can send again when the last byte has left it;
// - completions of equal time come in a fixed order, the same in every run: in the flow engine that
//   in which their last bytes left the sources, then that in which they came to the head of their
//   connections; in the analytical engine that of send(); in the packet engine that of the windows
//   in which their last packets left the last port, then that of send();
// - a message of zero bytes takes the latency of the path, with the packet engine also the time of
//   its headers on each link; a connection of a node to itself takes no time at all. Both still
//   complete as events.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/event.h"
#include "sim/ids.h"
#include "sim/simulator.h"
#include "sim/units.h"
#include "topology/routing/routing.h"

namespace trainyard {

struct ConnectionSpec {
  NodeId source;
  NodeId target;
  // The value that ECMP hashes beside the ends: the UDP source port of a RoCE queue pair.
  std::uint32_t flow_label = 0;
  // Turns for an end that has several NICs, or is a NIC of several cables; otherwise the flow label
  // decides.
  std::optional<NicTurns> nic_turns = {};
  // Number of the path among the equally good ones under RoutingPolicy::Spray: for SprayNetwork
  // alone to set.
  std::uint32_t path = 0;
  // Traffic class, 0 to 7: for engines with queues, which have a default; others ignore it.
  std::optional<std::uint8_t> priority = {};
};

// The traffic that one link carried.
struct LinkUse {
  LinkId link;
  Bytes bytes;
};

// Counts over all ports and connections of the packet engine together.
struct PacketStats {
  std::uint64_t hops = 0;          // Data packets, once for each link that they crossed.
  std::uint64_t skipped_hops = 0;  // Hops that were not simulated: fast-forward.
  double skip_error = 0.0;         // The part by which the rates of these are off at most.
  std::uint64_t marks = 0;         // ECN: packets that were marked.
  std::uint64_t cnps = 0;          // Congestion notifications that were sent.
  std::uint64_t acks = 0;
  std::uint64_t pauses = 0;       // PFC: XOFF frames that were sent.
  SimTime paused_time;            // Sum over all ports.
  std::uint64_t drops = 0;        // For lack of room, or for a reason of these:
  std::uint64_t bit_errors = 0;   // A bit flipped on a link.
  std::uint64_t link_down = 0;    // The link had failed.
  std::uint64_t storm_drops = 0;  // A watchdog had seen a pause storm there.
  std::uint64_t storms = 0;
  std::uint64_t retransmitted = 0;  // Packets that were sent again.
  std::uint64_t timeouts = 0;
  std::uint64_t failures = 0;   // Connections that gave up.
  std::uint64_t reordered = 0;  // Packets that reached their target before an earlier one.
  Bytes max_queued;             // At one port.
};

struct NetworkStats {
  std::uint64_t messages = 0;  // Messages whose last byte left the source.
  Bytes bytes;
  std::uint64_t connections = 0;
  std::uint64_t path_classes = 0;  // Flow engine: distinct paths.
  std::uint64_t solves = 0;        // Flow engine: instants at which rates were computed anew.
  std::uint64_t rate_changes = 0;  // Flow engine: rates that these gave.
  PacketStats packets = {};        // Packet engine.
};

// Counters that operators read off switches and NICs, for engines that have packets and queues.

// Counts what the port at the source of a directed link sent, over all priorities.
struct PortCounters {
  LinkId link = {};
  std::uint64_t packets = 0;  // Data packets that were sent.
  Bytes bytes = {};  // On the wire, with control packets and PFC frames, preambles and gaps.
  std::uint64_t ecn_marked = 0;
  // Packets dropped in all, and of these for lack of room, by a bit error of the link, since it has
  // failed, or in a pause storm that a watchdog has seen.
  std::uint64_t dropped = 0;
  std::uint64_t no_room = 0;
  std::uint64_t bit_errors = 0;
  std::uint64_t link_down = 0;
  std::uint64_t in_storms = 0;
  std::uint64_t pause_frames_sent = 0;      // To stop what the other end sends to this port.
  std::uint64_t pause_frames_received = 0;  // Each stops a priority of this port.
  std::uint64_t storms = 0;                 // Pauses that its watchdog cut short as storms.
  SimTime paused = {};                      // While at least one priority was stopped.
  SimTime starved = {};                     // Without credits for the largest packet.
  Bytes queue_max = {};                     // Most that ever waited, in bytes of packets.
  // Percentiles over time, where that was asked for: at most a quarter too high.
  std::optional<Bytes> queue_p50 = {};
  std::optional<Bytes> queue_p99 = {};
};

// Counts of one connection: its queue pair, at the end that sends.
struct ConnectionCounters {
  std::uint64_t packets = 0;  // Sent, those that were sent again included.
  std::uint64_t retransmitted = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t congestion_notifications = 0;  // CNPs received.
};

// A sample of a port that is stopped or whose queue is not empty, or was so at the sample before.
struct QueueSample {
  SimTime time;
  LinkId link;
  Bytes bytes;  // Bytes of data frames that wait.
  bool is_paused;
};

// A sample of a connection that has messages to complete, or sent something since the sample
// before.
struct RateSample {
  SimTime time;
  ConnectionId connection;
  NodeId source;
  NodeId target;
  Bandwidth limit;  // Limit by congestion control and by the connection's own stage of the path.
  Bandwidth sent;   // Payload that left the source since the sample before.
  // The window of its congestion control, in full packets; absent under controls that have none.
  std::optional<double> window_packets = {};
  // The smoothed round trip of TCP; absent before the first ACK, and without TCP.
  std::optional<SimTime> smoothed_rtt = {};
};

// Each in order of time, then of links or connections.
struct PacketSamples {
  std::vector<QueueSample> queues;
  std::vector<RateSample> rates;
};

class Network {
 public:
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  virtual ~Network() = default;

  // Resolves the route. Throws ConfigError naming both nodes if there is none.
  virtual ConnectionId connect(const ConnectionSpec& spec) = 0;

  // Queues a message; `done` is woken with `token` when it is complete. `size` must not be
  // negative.
  virtual void send(ConnectionId connection, Bytes size, EventHandler& done,
                    std::uint64_t token) = 0;

  // A lower bound on the time by which all that was sent can have arrived, from what each link had
  // to carry. Engines in which messages do contend return the present or their last completion:
  // there, completions say it all.
  [[nodiscard]] virtual SimTime quiet_time() const = 0;

  // Memory for this many connections.
  virtual void reserve(std::size_t connections) = 0;

  [[nodiscard]] virtual NetworkStats stats() const = 0;
  // Links that carried anything, by id.
  [[nodiscard]] virtual std::vector<LinkUse> link_use() const = 0;
  // Return the counters of ports that sent, dropped or queued anything, by link; and of a
  // connection. Nothing in engines without packets.
  [[nodiscard]] virtual std::optional<std::vector<PortCounters>> port_counters() const {
    return std::nullopt;
  }
  [[nodiscard]] virtual std::optional<ConnectionCounters> connection_counters(
      ConnectionId /*connection*/) const {
    return std::nullopt;
  }
  // Returns the samples that PacketOptions::sample_every asked for.
  [[nodiscard]] virtual std::optional<PacketSamples> samples() const { return std::nullopt; }
  // Returns, after the last event, why messages are not complete, such as a cycle of paused links.
  // Nothing if all are.
  [[nodiscard]] virtual std::optional<std::string> complaint() const { return std::nullopt; }

 protected:
  Network() = default;
};

enum class Fidelity : std::uint8_t { Analytical, Flow, Packet };
[[nodiscard]] std::string_view to_string(Fidelity fidelity);

// Returns the links that carried anything, of bytes by link.
[[nodiscard]] std::vector<LinkUse> use_of(std::span<const Bytes> bytes);

// The links of the path of this number, into `path`. Throws ConfigError where there is none.
void route_connection(Routing& routing, const ConnectionSpec& spec, std::uint32_t number,
                      std::vector<LinkId>& path);

// Throws the ConfigError for two nodes without a path.
[[noreturn]] void throw_unreachable(const Topology& topology, NodeId source, NodeId target);

}  // namespace trainyard
