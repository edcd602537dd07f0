// SPDX-License-Identifier: Apache-2.0
#include "collectives/hccl/hccl_run.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "collectives/run/executor.h"
#include "network/engines/make_network.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// A network whose messages start late, by what the task that sends them costs.
class TaskNetwork final : public Network, private EventHandler {
 public:
  TaskNetwork(Simulator& simulator, Network& network, const Topology& topology,
              const HcclProfile& profile)
      : EventHandler(simulator),
        simulator_(simulator),
        network_(network),
        topology_(topology),
        profile_(profile) {}

  ConnectionId connect(const ConnectionSpec& spec) override {
    const ConnectionId id = network_.connect(spec);
    queues_.resize(std::max<std::size_t>(queues_.size(), id.value() + 1));
    queues_[id.value()].is_inside =
        topology_.node(spec.source).server == topology_.node(spec.target).server;
    return id;
  }
  void send(ConnectionId connection, Bytes size, EventHandler& done, std::uint64_t token) override {
    Queue& queue = queues_[connection.value()];
    queue.last = std::max(queue.last, simulator_.now() + cost(queue.is_inside, size));
    queue.messages.push_back({.size = size, .done = &done, .token = token});
    simulator_.schedule(queue.last - simulator_.now(), *this, connection.value());
  }
  [[nodiscard]] SimTime quiet_time() const override { return network_.quiet_time(); }
  void reserve(std::size_t connections) override { network_.reserve(connections); }
  [[nodiscard]] NetworkStats stats() const override { return network_.stats(); }
  [[nodiscard]] std::vector<LinkUse> link_use() const override { return network_.link_use(); }

 private:
  struct Message {
    Bytes size;
    EventHandler* done = nullptr;
    std::uint64_t token = 0;
  };
  struct Queue {
    bool is_inside = false;
    SimTime last = {};  // When the last message starts: none overtakes another.
    std::deque<Message> messages = {};
  };

  [[nodiscard]] SimTime cost(bool is_inside, Bytes size) const {
    constexpr Bytes kLong = kib(512);
    if (!is_inside) {
      return profile_.rdma * 2;
    }
    return profile_.notify * 2 + (size < kLong ? profile_.copy : profile_.long_copy);
  }
  void on_event(std::uint64_t token) override {
    Queue& queue = queues_[token];
    const Message message = queue.messages.front();
    queue.messages.pop_front();
    network_.send(ConnectionId(static_cast<std::uint32_t>(token)), message.size, *message.done,
                  message.token);
  }

  Simulator& simulator_;
  Network& network_;
  const Topology& topology_;
  const HcclProfile& profile_;
  std::vector<Queue> queues_;  // One for each connection.
};

struct LoopTiming {
  SimTime time;
  NetworkStats stats;
  std::uint64_t fingerprint = 0;
  std::vector<LinkUse> link_use = {};
  std::optional<std::string> complaint = {};
};

LoopTiming run_loop(const Cluster& cluster, const Schedule& schedule, const HcclProfile& profile,
                    const HcclCall& call, Bytes size, TraceRecorder* trace) {
  Routing routing(cluster.topology, cluster.routing);
  Simulator simulator;
  const auto network = make_network(call.fidelity, simulator, routing, call.packet);
  TaskNetwork tasks(simulator, *network, cluster.topology, profile);
  Executor executor(simulator, tasks, schedule, cluster.gpus, size, trace);
  executor.start();
  simulator.run();
  LoopTiming timing{.time = {},
                    .stats = network->stats(),
                    .fingerprint = simulator.fingerprint(),
                    .link_use = network->link_use(),
                    .complaint = network->complaint()};
  if (!timing.complaint) {
    const std::optional<std::string> violation = executor.contract_violation();
    CHECK(!violation, *violation);
    timing.time = executor.finish_time();
  }
  return timing;
}

// Entries of listings and steps are held in memory: 2 N^2 of alltoall, less of all others.
void check_held(const HcclMachine& machine) {
  constexpr std::uint32_t kMaxRanks = 2'048;
  if (machine.shape.ranks() > kMaxRanks) {
    throw ConfigError(fmt::format("--runtime hccl: expected at most {} ranks, found {}", kMaxRanks,
                                  machine.shape.ranks()));
  }
}

void add_uses(const std::vector<LinkUse>& uses, std::int64_t times,
              std::map<LinkId, Bytes>& carried) {
  for (const LinkUse& use : uses) {
    carried[use.link] += use.bytes * times;
  }
}

}  // namespace

HcclTiming time_hccl(const Cluster& cluster, const HcclMachine& machine, const HcclPlan& plan,
                     const HcclProfile& profile, const HcclCall& call) {
  check_held(machine);
  HcclTiming timing{.time = profile.call + transfer_time(plan.copied, profile.memory)};
  const auto schedule = hccl_schedule(call.operation, machine.shape, plan.way);
  std::map<LinkId, Bytes> carried;
  TraceRecorder* trace = call.trace;
  const Bytes rest = call.size - plan.loop * (plan.loops - 1);
  const int equal = rest == plan.loop ? plan.loops : plan.loops - 1;
  for (const auto& [size, times] :
       {std::pair{plan.loop, equal}, std::pair{rest, plan.loops - equal}}) {
    if (times == 0) {
      continue;
    }
    const LoopTiming loop =
        run_loop(cluster, *schedule, profile, call, size, std::exchange(trace, nullptr));
    timing.complaint = loop.complaint ? loop.complaint : timing.complaint;
    timing.time += loop.time * times;
    timing.messages += loop.stats.messages * static_cast<std::uint64_t>(times);
    timing.fingerprint = timing.fingerprint == 0 ? loop.fingerprint : timing.fingerprint;
    add_uses(loop.link_use, times, carried);
  }
  for (const auto& [link, bytes] : carried) {
    timing.link_use.push_back({.link = link, .bytes = bytes});
  }
  return timing;
}

}  // namespace trainyard
