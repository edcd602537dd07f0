// SPDX-License-Identifier: Apache-2.0
// Measures how long messages take, from send() to the last byte at the target, on any engine.
//
// Times are counted in buckets, of which there are 1,024 from one power of two to the next, so that
// memory does not grow with messages. A percentile is the end of its bucket, at most 0.1 % too
// high. Who measures changes no time and no order of completions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "network/contract/network.h"
#include "sim/simulator.h"

namespace trainyard {

// Percentiles by nearest rank: the least time within which so many messages were complete.
struct MessageTimes {
  std::uint64_t messages = 0;  // Those that are complete.
  SimTime p50 = {};
  SimTime p99 = {};
  SimTime max = {};  // Exact.
};

class TimeCounts {
 public:
  void add(SimTime time);
  [[nodiscard]] MessageTimes times() const;

 private:
  [[nodiscard]] SimTime percentile(std::uint64_t percent) const;

  std::vector<std::uint64_t> buckets_;  // As many as the longest time needs.
  std::uint64_t count_ = 0;
  SimTime max_ = {};
};

// Another network, whose messages are timed.
class TimedNetwork final : public Network, private EventHandler {
 public:
  TimedNetwork(Simulator& simulator, std::unique_ptr<Network> network);

  ConnectionId connect(const ConnectionSpec& spec) override { return network_->connect(spec); }
  void send(ConnectionId connection, Bytes size, EventHandler& done, std::uint64_t token) override;
  [[nodiscard]] SimTime quiet_time() const override { return network_->quiet_time(); }
  void reserve(std::size_t connections) override { network_->reserve(connections); }
  [[nodiscard]] NetworkStats stats() const override { return network_->stats(); }
  [[nodiscard]] std::vector<LinkUse> link_use() const override { return network_->link_use(); }
  [[nodiscard]] std::optional<std::vector<PortCounters>> port_counters() const override {
    return network_->port_counters();
  }
  [[nodiscard]] std::optional<ConnectionCounters> connection_counters(
      ConnectionId connection) const override {
    return network_->connection_counters(connection);
  }
  [[nodiscard]] std::optional<PacketSamples> samples() const override {
    return network_->samples();
  }
  [[nodiscard]] std::optional<std::string> complaint() const override {
    return network_->complaint();
  }

  [[nodiscard]] Network& network() { return *network_; }
  [[nodiscard]] const Network& network() const { return *network_; }
  [[nodiscard]] MessageTimes times() const { return counts_.times(); }

 private:
  struct Message {
    SimTime sent;
    EventHandler* done;
    std::uint64_t token;
  };

  void on_event(std::uint64_t slot) override;

  Simulator& simulator_;
  std::unique_ptr<Network> network_;
  TimeCounts counts_;
  std::vector<Message> messages_;  // Those under way, by slot.
  std::vector<std::uint64_t> free_;
};

}  // namespace trainyard
