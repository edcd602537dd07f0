// SPDX-License-Identifier: Apache-2.0
// Sets of messages between the hosts of a fabric, and their run on an engine.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "network/contract/network.h"
#include "sim/random.h"
#include "support/fabrics.h"
#include "support/recorder.h"

namespace trainyard {

struct TestConnection {
  std::uint32_t source = 0;  // Indices of hosts.
  std::uint32_t target = 0;
  std::uint32_t flow_label = 0;
  std::optional<std::uint8_t> priority = {};
};

struct TestMessage {
  std::uint32_t connection = 0;
  SimTime time = {};
  Bytes size = {};
};

// Messages are sent in this order; times do not fall.
struct Traffic {
  std::vector<TestConnection> connections;
  std::vector<TestMessage> messages;
};

struct MessagesRun {
  std::vector<SimTime> arrivals;  // By message.
  std::vector<std::uint64_t> order;
  std::vector<LinkUse> link_use;
  NetworkStats stats;
  SimTime finish;  // The later of the last completion and quiet_time().
  std::uint64_t fingerprint = 0;
};

// Up to 10 connections and 24 messages; bursts at one instant, queues on a connection, empty
// messages and, rarely, messages of a host to itself.
[[nodiscard]] Traffic random_traffic(const TestFabric& fabric, RandomStream& random);

// What run_traffic and paths_of route by.
inline constexpr RoutingOptions kTestRouting{.policy = RoutingPolicy::EcmpHash, .seed = 7};

// Connects and sends on a network of any kind until the last message is complete. The completions,
// the index of the message as token.
[[nodiscard]] std::vector<Woken> play(Simulator& simulator, Network& network,
                                      const TestFabric& fabric, const Traffic& traffic);

// The same until `time`, where not every message needs to arrive.
[[nodiscard]] std::vector<Woken> play_until(Simulator& simulator, Network& network,
                                            const TestFabric& fabric, const Traffic& traffic,
                                            SimTime time);

[[nodiscard]] MessagesRun run_traffic(const TestFabric& fabric, const Traffic& traffic,
                                      Fidelity fidelity);

// The links of each connection, as run_traffic routes them.
[[nodiscard]] std::vector<std::vector<LinkId>> paths_of(const TestFabric& fabric,
                                                        const Traffic& traffic);

}  // namespace trainyard
