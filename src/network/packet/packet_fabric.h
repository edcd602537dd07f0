// SPDX-License-Identifier: Apache-2.0
// Owns what packets move through: ports of links, switches with buffers, credits, and the paths of
// connections. It is laid out while connections are set up. In a run only the state inside a port,
// a switch, its load or the credits of a link changes, and only by whoever works for the node that
// sends from there.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "hw/switch/ecn.h"
#include "network/packet/packet_adaptive.h"
#include "network/packet/packet_lanes.h"
#include "network/packet/packet_options.h"
#include "network/packet_parts/packet_losses.h"
#include "network/packet_parts/packet_pauses.h"
#include "network/packet_parts/packet_port.h"
#include "network/packet_parts/packet_routes.h"
#include "network/packet_parts/packet_switch.h"
#include "network/packet_parts/packet_team.h"
#include "sim/ids.h"
#include "topology/graph/topology.h"

namespace trainyard {

// Bytes on the line.
struct PacketSizes {
  std::int64_t full = 0;          // Bytes of a full packet;
  std::int64_t largest = 0;       // the first of a message has more headers.
  std::int64_t around_frame = 0;  // Bytes of a packet that no switch stores.
  std::int64_t ack = 0;
  std::int64_t cnp = 0;
  std::int64_t stamps = 0;  // Bytes that HPCC adds to data and ACKs.
};

// Credits of a link: its sender begins a data packet only while the buffer at the far end has room
// for the largest one. A packet takes its bytes of the buffer when it begins on the link and gives
// them back when its last byte has left the far end; the sender knows that after the latency of the
// link. Each lane of a port with lanes has a buffer of its own, others have the first one.
// docs/models/packet.md says what is left out.
struct LinkCredits {
  struct Return {
    Picoseconds time = 0;  // When the sender knows.
    std::int64_t bytes = 0;
    std::uint32_t lane = 0;
    friend auto operator<=>(const Return&, const Return&) = default;
  };

  // Bytes on the line that may still be sent, by lane.
  std::array<std::int64_t, LaneOptions::kLanes> open{};
  Picoseconds flight = 0;
  Picoseconds starved_since = 0;  // Since then some lane has no room.
  Picoseconds starved_time = 0;
  std::vector<Return> returns = {};  // On their way; a heap, the earliest first.
};

class PacketFabric {
 public:
  // `topology` must outlive the fabric. Throws ConfigError for options that make no sense.
  PacketFabric(const Topology& topology, const PacketOptions& options);

  [[nodiscard]] const Topology& topology() const { return topology_; }
  // Returns the options as they were given, but with as many packets for an ACK as the control asks
  // for.
  [[nodiscard]] const PacketOptions& options() const { return options_; }
  [[nodiscard]] const PacketSizes& sizes() const { return sizes_; }
  // Bytes on the line of a packet with this payload; the first of a message has more headers.
  [[nodiscard]] std::int64_t wire_of(std::int64_t payload, bool first) const;
  // ACKs or CNPs go back to the source.
  [[nodiscard]] bool has_way_back() const;
  // The port of a link in use goes on at the line rate of a link with this rate, above zero and at
  // most its own, but for the packet that it is sending.
  void slow_down(LinkId link, Bandwidth rate);
  // Returns the line rate of a link of this kind, whose LinkSpec states `rate`.
  [[nodiscard]] Bandwidth line_rate(Bandwidth rate, LinkKind kind) const;

  // Appends the ports of a path; the least time from when a packet begins at one of them to when
  // that matters elsewhere. Throws ConfigError where something must go back and a link has none.
  Picoseconds add_path(std::span<const LinkId> path);
  // The same for the links back.
  Picoseconds add_way_back(std::span<const LinkId> path);
  // The path from where packets wait for their turn: TCP's wait in the queue of the adapter, so
  // that what lies before it in the server only bounds their rate.
  [[nodiscard]] std::span<const LinkId> from_queue(std::span<const LinkId> path) const;
  // Returns the rate of the stage of the path that belongs to the sender, bits per second.
  [[nodiscard]] std::uint64_t own_rate(std::span<const LinkId> path) const;
  // Returns when so many bytes have left the port that it begins to send at `start`: after their
  // time on the line or, from a bucket (PacketOptions::burst), as soon as there is enough in it.
  [[nodiscard]] Picoseconds end_on_line(const Port& port, std::uint32_t index, std::int64_t wire,
                                        Picoseconds start);

  // The ports of links in use, in order of first use.
  [[nodiscard]] std::vector<Port>& ports() { return ports_; }
  [[nodiscard]] const std::vector<Port>& ports() const { return ports_; }
  [[nodiscard]] std::uint32_t port_index(LinkId link) const { return port_index_[link.value()]; }
  // Ports of all paths, one path after the other, and the number of the ingress port there.
  [[nodiscard]] const std::vector<std::uint32_t>& positions() const { return positions_; }
  [[nodiscard]] const std::vector<std::uint16_t>& entries() const { return entries_; }
  [[nodiscard]] std::vector<PacketSwitch>& switches() { return switches_; }
  [[nodiscard]] const std::vector<PacketSwitch>& switches() const { return switches_; }
  [[nodiscard]] std::vector<SwitchLoad>& loads() { return loads_; }  // Loads by switch.
  [[nodiscard]] const std::vector<SwitchLoad>& loads() const { return loads_; }
  // Credits of the links that have them.
  [[nodiscard]] std::vector<LinkCredits>& credits() { return credits_; }
  [[nodiscard]] const std::vector<LinkCredits>& credits() const { return credits_; }
  // The routes of connections whose path changes.
  [[nodiscard]] PacketRoutes& routes() { return routes_; }
  [[nodiscard]] const PacketRoutes& routes() const { return routes_; }
  // The queues of ports with lanes, and the lane of a connection: 0 where there is one class of
  // data.
  [[nodiscard]] std::vector<LaneQueues>& lanes() { return lanes_; }
  [[nodiscard]] const std::vector<LaneQueues>& lanes() const { return lanes_; }
  [[nodiscard]] std::uint32_t lane_of(std::uint32_t connection) const {
    return options_.lanes ? lane_of_[connection] : 0;
  }
  // The lane of a connection at this port: its buffer where there are credits.
  [[nodiscard]] std::uint32_t lane_at(const Port& port, std::uint32_t connection) const {
    return port.lanes == kNoIndex ? 0 : lane_of(connection);
  }
  // Sets the lane of the next connection.
  void add_lane(std::optional<std::uint8_t> lane) {
    if (options_.lanes) {
      lane_of_.push_back(lane.value_or(options_.lanes->usual));
    }
  }
  // Returns whether switches choose ports, and among which.
  [[nodiscard]] bool chooses() const {
    return options_.adaptive && options_.adaptive->unit != AdaptiveOptions::Unit::Connection;
  }
  [[nodiscard]] const PacketFans& fans() const { return fans_; }
  // Hosts that pause, and watchdogs of ports.
  [[nodiscard]] std::vector<PausingHost>& hosts() { return hosts_; }
  [[nodiscard]] std::vector<PortGuard>& guards() { return guards_; }
  [[nodiscard]] const std::vector<PortGuard>& guards() const { return guards_; }
  // packet_adaptive.cpp. Throws ConfigError for rates among which nothing can choose.
  void add_fans(const PacketFans::Ways& ways);
  // Returns whether buffers are told of every packet from the start.
  [[nodiscard]] bool is_never_open() const {
    return options_.always_exact || chooses() || options_.watchdog;
  }
  // Returns whether switches have a buffer that may be full.
  [[nodiscard]] bool has_bounds() const { return options_.pfc || options_.buffer > Bytes(0); }
  // Returns whether a switch may have no room for a packet of some class.
  [[nodiscard]] bool can_lose() const {
    return (has_bounds() && has_lossy_lane()) || options_.port_queue > Bytes(0);
  }
  // The number of the source of this connection at its first port.
  [[nodiscard]] std::uint32_t& source_of(Port& port, std::uint32_t connection);
  // Returns whether some class of data is lost rather than stopped.
  [[nodiscard]] bool has_lossy_lane() const {
    return !options_.pfc || (options_.lanes && options_.lanes->lossless != 0xFF);
  }
  [[nodiscard]] PacketLosses& losses() { return losses_; }
  [[nodiscard]] const PacketLosses& losses() const { return losses_; }
  [[nodiscard]] const RedMarker& marker(std::uint32_t number) const { return markers_[number]; }
  // Into which the fabric is cut (packet_partition.h), one for each thread of each process.
  [[nodiscard]] std::uint32_t parts() const {
    const std::uint32_t processes = options_.team == nullptr ? 1 : options_.team->size();
    return processes * static_cast<std::uint32_t>(options_.threads);
  }
  // Returns whether another process works for the part, or the port.
  [[nodiscard]] bool is_elsewhere(std::uint32_t part) const {
    return options_.team != nullptr &&
           part / static_cast<std::uint32_t>(options_.threads) != options_.team->rank();
  }
  [[nodiscard]] bool is_port_elsewhere(std::uint32_t index) const {
    return options_.team != nullptr && is_elsewhere(ports_[index].part);
  }
  // Returns whether a switch of the fabric sends on it.
  [[nodiscard]] bool is_of_fabric(const Link& link) const;

  // Returns the time that the smallest packet takes to the end of the link of a path's last port,
  // of which no window is longer.
  [[nodiscard]] Picoseconds reach(const Port& port) const { return lookahead(port, true); }
  // Returns the time at which the next port has a packet of so many bytes that is on the line from
  // `start` to `end`.
  [[nodiscard]] Picoseconds handed_on(const Port& port, std::uint32_t next, std::int64_t wire,
                                      Picoseconds start, Picoseconds end) const;
  // Returns the time at which a packet that begins at 0 is at the end of the path, with nothing
  // else under way; and the same if every node stores it as a whole.
  [[nodiscard]] Picoseconds idle_time(std::uint32_t first, std::uint8_t hops,
                                      std::int64_t wire) const;
  [[nodiscard]] Picoseconds stored_time(std::uint32_t first, std::uint8_t hops,
                                        std::int64_t wire) const;

 private:
  void set_sizes();
  [[nodiscard]] std::uint32_t port_of(LinkId link);
  [[nodiscard]] LinkId link_back(LinkId link) const;
  [[nodiscard]] std::uint32_t number_at(NodeId node, LinkId out) const;
  [[nodiscard]] Picoseconds lookahead(const Port& port, bool is_last) const;

  // packet_switch.cpp
  void check_marking() const;
  void set_up_switch(Port& port, const Link& link);
  [[nodiscard]] std::uint32_t switch_of(NodeId node);
  [[nodiscard]] IngressLimits ingress_limits(const Link& link) const;
  // packet_lanes.cpp
  void set_up_lanes(Port& port, const Link& link);
  // packet_pauses.cpp
  void set_up_pauses(Port& port, const Link& link);
  void add_hosts();
  // packet_credits.cpp
  void set_up_credits(Port& port, const Link& link);
  [[nodiscard]] Picoseconds credit_lookahead(std::uint32_t before, std::uint32_t index) const;
  [[nodiscard]] bool has_bucket(const Port& port) const {
    return !full_at_.empty() && full_at_[port_index_[port.link]] != kNeverTime;
  }

  const Topology& topology_;
  PacketOptions options_;
  PacketSizes sizes_;
  std::vector<Port> ports_;
  std::vector<std::uint32_t> port_index_;  // Indexed by link.
  // When the bucket of each port is full again; kNeverTime: a line. Empty if all are lines.
  std::vector<Picoseconds> full_at_;
  std::vector<PacketSwitch> switches_;
  std::vector<SwitchLoad> loads_;
  std::vector<std::uint32_t> switch_index_;  // Indexed by node.
  std::vector<std::uint32_t> part_;          // Indexed by node; empty if there is one part only.
  std::vector<LinkCredits> credits_;
  std::vector<std::uint32_t> positions_;
  std::vector<std::uint16_t> entries_;
  std::vector<RedMarker> markers_;                       // Markers by rate of the port.
  std::map<std::uint64_t, std::uint32_t> marker_index_;  // Index of the marker for each rate.
  PacketLosses losses_;
  PacketRoutes routes_;
  PacketFans fans_;
  std::vector<PausingHost> hosts_;
  std::vector<PortGuard> guards_;
  std::vector<LaneQueues> lanes_;
  std::vector<std::uint8_t> lane_of_;  // Indexed by connection, where there are several lanes.
};

// The time of these bytes at this rate.
[[nodiscard]] inline Picoseconds time_at(std::uint64_t bits_per_second, std::int64_t wire) {
  // A packet has at most 65,535 B: 5.3e17.
  constexpr std::uint64_t kBitPicoseconds = 8'000'000'000'000;
  const auto bits = static_cast<std::uint64_t>(wire) * kBitPicoseconds;
  return static_cast<Picoseconds>((bits + bits_per_second - 1) / bits_per_second);
}

// The time that so many bytes take on the line of the port.
[[nodiscard]] inline Picoseconds time_on_line(const Port& port, const PacketSizes& sizes,
                                              std::int64_t wire) {
  if (wire == sizes.full) [[likely]] {
    return port.full_time;
  }
  return time_at(port.bits_per_second, wire);
}

inline Picoseconds PacketFabric::end_on_line(const Port& port, std::uint32_t index,
                                             std::int64_t wire, Picoseconds start) {
  const Picoseconds time = time_on_line(port, sizes_, wire);
  if (full_at_.empty() || full_at_[index] == kNeverTime) [[likely]] {
    return start + time;
  }
  Picoseconds& full_at = full_at_[index];
  const Picoseconds whole = time_at(port.bits_per_second, options_.burst.count());
  const Picoseconds end = std::max(start, full_at + time - whole);
  full_at = std::max(full_at, end) + time;
  return end;
}

inline Picoseconds PacketFabric::handed_on(const Port& port, std::uint32_t next, std::int64_t wire,
                                           Picoseconds start, Picoseconds end) const {
  if (!port.cuts_through) {
    return end + port.through_delay;
  }
  // A faster port would run out of bytes: it begins so late that both end at once.
  const Picoseconds held = end - start - time_on_line(ports_[next], sizes_, wire);
  const Picoseconds read =
      time_on_line(port, sizes_, std::min<std::int64_t>(kCutThroughBytes, wire));
  return start + std::max(std::min(read, end - start), held) + port.through_delay;
}

}  // namespace trainyard
