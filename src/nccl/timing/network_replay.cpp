// SPDX-License-Identifier: Apache-2.0
#include "nccl/timing/network_replay.h"

#include <algorithm>
#include <cstddef>
#include <memory>

#include "nccl/timing/replay_core.h"
#include "network/engines/make_network.h"
#include "sim/check.h"

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
      const ReplayConnection& connection = network.connections[index];
      CHECK(connection.queue_pairs.size() % connection.parts == 0,
            "messages go over equal groups of queue pairs");
      first_pair_.push_back(pairs_.size());
      entered_.push_back(0);
      arrived_.push_back(0);
      for (const ConnectionSpec& spec : connection.queue_pairs) {
        pairs_.push_back({.id = engine.connect(spec), .connection = index, .completed = 0});
      }
    }
  }

  void run(ReplayCore<EngineDriver>& core) {
    core_ = &core;
    core.start();
    simulator_.run();
  }

  void push(std::int64_t time, std::uint64_t token) {
    simulator_.schedule_at(SimTime(time), *this, token);
  }

  // Parts are equal but for the last ones, and whole lines of LL128 (NVIDIA/nccl,
  // src/transport/net_ib/p2p.cc: ncclIbMultiSend).
  void enter(std::uint32_t index, Bytes bytes) {
    constexpr std::int64_t kLine = 128;
    const ReplayConnection& connection = network_.connections[index];
    std::int64_t rest =
        (bytes.count() * connection.wire_bytes + connection.data_bytes - 1) / connection.data_bytes;
    const auto parts = static_cast<std::int64_t>(connection.parts);
    const std::int64_t part = ((rest + parts - 1) / parts + kLine - 1) / kLine * kLine;
    const bool told = connection.told_above && Bytes(rest) > *connection.told_above;
    const std::size_t first = first_pair_of(index, entered_[index]++);
    for (std::size_t pair = first; pair < first + connection.parts; ++pair) {
      const Bytes size(std::min(rest, part));
      rest -= size.count();
      engine_.send(pairs_[pair].id, size, completions_, told ? kData : pair);
      if (told) {
        engine_.send(pairs_[pair].id, {}, completions_, pair);
      }
    }
  }

 private:
  static constexpr std::uint64_t kData = ~std::uint64_t{0};  // Token of data that others tell.

  class Completions final : public EventHandler {
   public:
    Completions(Simulator& simulator, EngineDriver& driver)
        : EventHandler(simulator), driver_(driver) {}

   private:
    void on_event(std::uint64_t token) override { driver_.complete(token); }
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

  // First of the pairs that carry this message of a connection.
  [[nodiscard]] std::size_t first_pair_of(std::uint32_t index, std::uint64_t message) const {
    const ReplayConnection& connection = network_.connections[index];
    return first_pair_[index] + message * connection.parts % connection.queue_pairs.size();
  }

  [[nodiscard]] bool is_there(std::uint32_t index, std::uint64_t message) const {
    const ReplayConnection& connection = network_.connections[index];
    const std::uint64_t groups = connection.queue_pairs.size() / connection.parts;
    const auto first = pairs_.begin() + static_cast<std::ptrdiff_t>(first_pair_of(index, message));
    return std::all_of(first, first + static_cast<std::ptrdiff_t>(connection.parts),
                       [&](const QueuePair& pair) { return pair.completed > message / groups; });
  }

  // A message is there when all of its parts are, and the receiver takes them in order.
  void complete(std::uint64_t token) {
    if (token == kData) {
      return;
    }
    QueuePair& pair = pairs_[token];
    ++pair.completed;
    for (; is_there(pair.connection, arrived_[pair.connection]); ++arrived_[pair.connection]) {
      core_->arrived(pair.connection, simulator_.now().picoseconds());
    }
  }

  Simulator& simulator_;
  Network& engine_;
  const ReplayNetwork& network_;
  Completions completions_;
  ReplayCore<EngineDriver>* core_ = nullptr;
  // Indexed by connection of the replay: its first pair, and how many messages entered and arrived.
  std::vector<std::size_t> first_pair_;
  std::vector<std::uint64_t> entered_;
  std::vector<std::uint64_t> arrived_;
  std::vector<QueuePair> pairs_;
};

}  // namespace

SimTime replay_over(const EngineSettings& settings, Routing& routing, const ReplayNetwork& network,
                    std::span<const ReplayLane> lanes, std::uint64_t max_units,
                    EngineOutcome& outcome, const ReplayWatch& watch) {
  Simulator simulator;
  const std::unique_ptr<Network> engine =
      make_network(settings.fidelity, simulator, routing, settings.packet, settings.extras);
  EngineDriver driver(simulator, *engine, network);
  ReplayCore<EngineDriver> core(driver, network, lanes, max_units, watch);
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
