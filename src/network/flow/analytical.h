// SPDX-License-Identifier: Apache-2.0
// The cheapest engine: every message as if it were alone, and a bound from the load of the links.
//
// A message of b bytes on a path of latency L and least bandwidth B, sent at s on a connection that
// is free from f on, leaves the source at e = max(s, f) + b / B and arrives at e + L. Messages of
// different connections do not see each other. What a link l with capacity C_l had to carry, b_l
// bytes from its first message at s_l on, bounds the end of all of it from below,
//     quiet_time = max over l of  s_l + b_l / C_l + (least L of the messages on l),
// which is the "congestion and dilation" bound of routing theory. Who waits for a set of messages
// takes the later of the last completion and quiet_time(): without it an all-to-all would be off by
// the number of ranks. Both terms are lower bounds on the time in the flow engine, for any set of
// messages and any dependencies between them, so analytical <= flow always.
#pragma once

#include <cstdint>
#include <vector>

#include "network/contract/network.h"

namespace trainyard {

class AnalyticalNetwork final : public Network {
 public:
  AnalyticalNetwork(Simulator& simulator, Routing& routing);

  ConnectionId connect(const ConnectionSpec& spec) override;
  void send(ConnectionId connection, Bytes size, EventHandler& done, std::uint64_t token) override;
  [[nodiscard]] SimTime quiet_time() const override;
  void reserve(std::size_t connections) override { connections_.reserve(connections); }
  [[nodiscard]] NetworkStats stats() const override;
  [[nodiscard]] std::vector<LinkUse> link_use() const override;

 private:
  struct Connection {
    std::uint32_t path_first = 0;  // In path_links_.
    std::uint32_t path_length = 0;
    Bandwidth bandwidth;
    SimTime latency;
    SimTime free_at;
  };
  struct LinkLoad {
    Bytes bytes;
    SimTime first_send;
    SimTime min_latency = SimTime::max();
  };

  Simulator& simulator_;
  Routing& routing_;
  std::vector<Connection> connections_;
  std::vector<LinkId> path_links_;
  std::vector<LinkLoad> loads_;  // Indexed by link.
  std::vector<LinkId> route_;    // Scratch.
  std::uint64_t messages_ = 0;
  Bytes bytes_;
};

}  // namespace trainyard
