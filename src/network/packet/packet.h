// SPDX-License-Identifier: Apache-2.0
// The packet engine as a Network: messages cut into packets that wait in the queues of ports.
//
// The engine works in windows (packet_engine.h). A window is worked through at its end, as one
// event of the simulator: all that was sent before its end is known then, and no packet that leaves
// in it can be complete before. Completions are scheduled at the exact time at which the last byte
// arrives.
//
// A message of zero bytes is a packet of headers only: it takes the latency of the path and the
// time of its headers on every link.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "network/contract/network.h"
#include "network/flow/spray.h"
#include "network/packet/packet_engine.h"
#include "network/packet/packet_options.h"
#include "topology/routing/surviving_routes.h"

namespace trainyard {

class PacketNetwork final : public Network, private EventHandler {
 public:
  PacketNetwork(Simulator& simulator, Routing& routing, const PacketOptions& options = {});

  ConnectionId connect(const ConnectionSpec& spec) override;
  void send(ConnectionId connection, Bytes size, EventHandler& done, std::uint64_t token) override;
  // Behind the last completion come ACKs, credits that nobody uses, and timers.
  [[nodiscard]] SimTime quiet_time() const override { return last_end_; }
  void reserve(std::size_t connections) override { connections_.reserve(connections); }
  [[nodiscard]] NetworkStats stats() const override;
  [[nodiscard]] std::vector<LinkUse> link_use() const override {
    engine_.gather();
    return engine_.payload_by_link();
  }

  // Explains, when nothing is left to happen, what became of the messages that are not complete, in
  // one line, with the links of a deadlock by name. Nothing if all are complete.
  [[nodiscard]] std::optional<std::string> complaint() const override;

  [[nodiscard]] std::optional<std::vector<PortCounters>> port_counters() const override;
  [[nodiscard]] std::optional<PacketSamples> samples() const override;
  [[nodiscard]] std::optional<ConnectionCounters> connection_counters(
      ConnectionId connection) const override;

  [[nodiscard]] PacketEngine& engine() { return engine_; }
  [[nodiscard]] const PacketEngine& engine() const { return engine_; }

 private:
  // From `known` on switches have the routes that are left after some failures.
  struct Convergence {
    Picoseconds known;
    std::unique_ptr<SurvivingRoutes> routes;
  };
  struct Reroute {
    Picoseconds from;
    std::vector<LinkId> path;
  };

  void on_event(std::uint64_t token) override;
  [[nodiscard]] std::uint32_t connect_adaptive(const ConnectionSpec& spec);
  // The ways that switches choose from, by their numbers, or what is left of them after failures:
  // none if nothing is. route_way() makes one of them.
  [[nodiscard]] std::vector<std::vector<LinkId>> ways_of(const ConnectionSpec& spec,
                                                         const std::vector<std::uint32_t>& numbers,
                                                         SurvivingRoutes* left);
  [[nodiscard]] bool route_way(const ConnectionSpec& spec, std::uint32_t number,
                               SurvivingRoutes* left);
  void wake_at_border();
  [[nodiscard]] bool wakes_soonest() const;
  void expect_failures(const PacketOptions& options);
  // Returns the paths that a connection takes later. Its route_ is replaced if its links are known
  // to have failed already.
  [[nodiscard]] std::vector<Reroute> reroutes(const ConnectionSpec& spec, std::uint32_t number);
  [[nodiscard]] std::uint32_t connect_sprayed(const ConnectionSpec& spec,
                                              const std::vector<std::uint32_t>& numbers);
  // Leaves out the failed paths of a connection over several paths.
  void leave_out_failed(std::uint32_t id, const std::vector<std::vector<LinkId>>& paths);

  Simulator& simulator_;
  Routing& routing_;
  PacketEngine engine_;
  // Paths of a pair where switches choose: all of them, and its first connection by the ends of its
  // paths.
  std::unique_ptr<Routing> ways_;
  std::map<std::vector<LinkId>, std::uint32_t> first_of_;
  SprayPaths paths_;
  std::vector<std::uint32_t> connections_;  // Number in the engine; kNoIndex for a node to itself.
  std::vector<Convergence> convergences_;   // In order of time.
  std::vector<LinkId> route_;               // Scratch.
  std::vector<PacketEngine::Completion> completions_;  // Scratch.
  SimTime wake_time_ = SimTime::max();
  SimTime last_end_{};
  std::uint64_t wake_generation_ = 0;
  std::uint64_t local_messages_ = 0;
  Bytes local_bytes_;
};

}  // namespace trainyard
