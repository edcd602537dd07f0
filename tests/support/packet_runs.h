// SPDX-License-Identifier: Apache-2.0
// Options and runs of the packet engine that tests have in common.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "network/contract/network.h"
#include "network/packet/packet_engine.h"
#include "support/fabrics.h"

namespace trainyard {

// Rates are those of the line and no message has more headers than another, so that times are easy
// to say. No flow control, no marks, no congestion control, no ACKs.
[[nodiscard]] inline PacketOptions line_options() {
  PacketOptions options;
  options.verb = RdmaVerb::Send;
  options.rates = RateMeaning::Line;
  return options;
}

// The same with PFC and this much buffer in every switch.
[[nodiscard]] inline PacketOptions lossless_options(Bytes buffer) {
  PacketOptions options = line_options();
  options.pfc = true;
  options.buffer = buffer;
  return options;
}

// Those of the line with this rule for what is lost, and an ACK for every 16th packet.
[[nodiscard]] inline PacketOptions recovering_options(Retransmission retransmission) {
  PacketOptions options = line_options();
  options.retransmission = retransmission;
  options.packets_per_ack = 16;
  return options;
}

// Islands of three hosts and a switch each. With hosts counted over all islands, the links of host
// h are 2 h to its switch and 2 h + 1 from there.
[[nodiscard]] inline TestFabric islands_of(const std::vector<LinkSpec>& links) {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  for (const LinkSpec& link : links) {
    const NodeId hub = add_switch(builder, "switch " + std::to_string(hosts.size() / 3));
    for (int host = 0; host < 3; ++host) {
      builder.add_duplex_link(add_host(builder, hosts), hub, link);
    }
  }
  return {.topology = std::move(builder).build(), .hosts = std::move(hosts)};
}

// The path from one host to another one of its island.
[[nodiscard]] inline std::array<LinkId, 2> path_on_island(std::uint32_t from, std::uint32_t to) {
  return {LinkId(2 * from), LinkId(2 * to + 1)};
}

// Adds what all ports have counted.
inline void add_port_counts(const Network& network, std::vector<std::uint64_t>& counts) {
  const auto counters = network.port_counters();
  for (const PortCounters& port : *counters) {
    counts.insert(counts.end(), {port.link.value(), port.packets,
                                 static_cast<std::uint64_t>(port.bytes.count()), port.ecn_marked,
                                 port.dropped, port.pause_frames_sent, port.pause_frames_received,
                                 static_cast<std::uint64_t>(port.paused.picoseconds()),
                                 static_cast<std::uint64_t>(port.queue_max.count())});
  }
}

// All windows in which anything is due.
inline std::vector<PacketEngine::Completion> run_windows(PacketEngine& engine) {
  std::vector<PacketEngine::Completion> completions;
  while (engine.next_border() != kNeverTime) {
    engine.run_window(completions);
  }
  return completions;
}

}  // namespace trainyard
