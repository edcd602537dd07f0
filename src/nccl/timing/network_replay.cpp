// SPDX-License-Identifier: Apache-2.0
#include "nccl/timing/network_replay.h"

#include <algorithm>
#include <memory>

#include "nccl/timing/replay_core.h"
#include "network/engines/make_network.h"

namespace trainyard::nccl {
namespace {

// Connects the replay and an engine, on one clock. Tokens of the replay's own events and of the
// engine's completions go to handlers of their own.
class EngineDriver final : private EventHandler {
 public:
  static constexpr bool kHasNetwork = true;

  EngineDriver(Simulator& simulator, Network& engine, const ReplayNetwork& network)
      : EventHandler(simulator),
        simulator_(simulator),
        engine_(engine),
        network_(network),
        completions_(simulator, *this) {
    for (std::uint32_t index = 0; index < network.connections.size(); ++index) {
      first_pair_.push_back(static_cast<std::uint32_t>(pairs_.size()));
      arrived_.push_back(0);
      for (const ConnectionSpec& spec : network.connections[index].queue_pairs) {
        pairs_.push_back({.id = engine.connect(spec), .connection = index, .completed = 0});
      }
    }
    first_pair_.push_back(static_cast<std::uint32_t>(pairs_.size()));
  }

  void run(ReplayCore<EngineDriver>& core) {
    core_ = &core;
    core.start();
    simulator_.run();
  }

  void push(std::int64_t time, std::uint64_t token) {
    simulator_.schedule_at(SimTime(time), *this, token);
  }

  // Every queue pair has an equal part, rounded up.
  void enter(std::uint32_t index, Bytes bytes) {
    const ReplayConnection& connection = network_.connections[index];
    const auto count = static_cast<std::int64_t>(connection.queue_pairs.size());
    const std::int64_t wire =
        (bytes.count() * connection.wire_bytes + connection.data_bytes - 1) / connection.data_bytes;
    for (std::uint32_t pair = first_pair_[index]; pair < first_pair_[index + 1]; ++pair) {
      engine_.send(pairs_[pair].id, Bytes((wire + count - 1) / count), completions_, pair);
    }
  }

 private:
  class Completions final : public EventHandler {
   public:
    Completions(Simulator& simulator, EngineDriver& driver)
        : EventHandler(simulator), driver_(driver) {}

   private:
    void on_event(std::uint64_t token) override {
      driver_.complete(static_cast<std::uint32_t>(token));
    }
    EngineDriver& driver_;
  };

  struct QueuePair {
    ConnectionId id;
    std::uint32_t connection = 0;
    std::uint64_t completed = 0;
  };

  void on_event(std::uint64_t token) override {
    core_->handle(token, simulator_.now().picoseconds());
  }

  // A message is there when all of its parts are.
  void complete(std::uint32_t pair) {
    ++pairs_[pair].completed;
    const std::uint32_t index = pairs_[pair].connection;
    std::uint64_t min = pairs_[pair].completed;
    for (std::uint32_t other = first_pair_[index]; other < first_pair_[index + 1]; ++other) {
      min = std::min(min, pairs_[other].completed);
    }
    if (min > arrived_[index]) {
      ++arrived_[index];
      core_->arrived(index, simulator_.now().picoseconds());
    }
  }

  Simulator& simulator_;
  Network& engine_;
  const ReplayNetwork& network_;
  Completions completions_;
  ReplayCore<EngineDriver>* core_ = nullptr;
  // First pair of each connection of the replay, and the number of all pairs.
  std::vector<std::uint32_t> first_pair_;
  std::vector<std::uint64_t> arrived_;  // Messages, the same.
  std::vector<QueuePair> pairs_;
};

}  // namespace

SimTime replay_over(const EngineSettings& settings, Routing& routing, const ReplayNetwork& network,
                    std::span<const ReplayLane> lanes, std::uint64_t max_units,
                    EngineOutcome& outcome) {
  Simulator simulator;
  const std::unique_ptr<Network> engine =
      make_network(settings.fidelity, simulator, routing, settings.packet, settings.extras);
  EngineDriver driver(simulator, *engine, network);
  ReplayCore<EngineDriver> core(driver, network, lanes, max_units);
  driver.run(core);
  // Fowler-Noll-Vo: the order of the runs counts.
  outcome.fingerprint = (outcome.fingerprint ^ simulator.fingerprint()) * 0x100000001b3;
  const NetworkStats stats = engine->stats();
  if (stats.messages >= outcome.network.messages) {
    outcome.network = stats;
    outcome.extras = extra_results(*engine);
    if (settings.keeps_counters) {
      outcome.port_counters = engine->port_counters();
      outcome.samples = engine->samples();
    }
  }
  if (const std::optional<std::string> complaint = engine->complaint()) {
    outcome.complaint = complaint;
    return {};
  }
  return std::max(core.end(), engine->quiet_time());
}

}  // namespace trainyard::nccl
