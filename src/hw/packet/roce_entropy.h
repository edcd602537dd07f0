// SPDX-License-Identifier: Apache-2.0
// Models the entropy that ECMP sees of a RoCEv2 queue pair, and how often few flows meet on one
// link.
#pragma once

#include <cstdint>
#include <vector>

namespace trainyard {

// The flow label of 20 bits that Linux derives from the two queue pair numbers where none was set
// (linux: include/rdma/ib_verbs.h, rdma_calc_flow_label).
[[nodiscard]] constexpr std::uint32_t roce_flow_label(std::uint32_t local, std::uint32_t remote) {
  std::uint64_t value = std::uint64_t{local} * remote;
  value ^= value >> 20;
  value ^= value >> 40;
  return static_cast<std::uint32_t>(value & 0xFFFFF);
}

// The UDP source port for a flow label: one of 0xC000 ... 0xFFFF (linux:
// rdma_flow_label_to_udp_sport). A queue pair keeps it, so that it has one path.
[[nodiscard]] constexpr std::uint16_t roce_udp_port(std::uint32_t flow_label) {
  const std::uint32_t low = flow_label & 0x3FFF;
  const std::uint32_t high = (flow_label & 0xFC000) >> 14;
  return static_cast<std::uint16_t>((low ^ high) | 0xC000);
}

// Equal flows that a hash spreads over equal links, each link as likely for each flow.
struct EcmpCollisions {
  std::vector<double> most;  // Element k - 1: the chance that the fullest link has k flows.
  double mean_most = 0.0;    // Mean number of flows on the fullest link.
  double slowest_share =
      0.0;  // Share of the ideal rate of the slowest flow: mean of flows / links / fullest.
};

// Exact but for rounding. `flows` and `links` must be positive.
[[nodiscard]] EcmpCollisions ecmp_collisions(int flows, int links);

}  // namespace trainyard
