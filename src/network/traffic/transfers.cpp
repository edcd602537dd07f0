// SPDX-License-Identifier: Apache-2.0
#include "network/traffic/transfers.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "network/engines/make_network.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "sim/simulator.h"

namespace trainyard {
namespace {

class Arrivals final : public EventHandler {
 public:
  Arrivals(Simulator& simulator, std::size_t transfers)
      : EventHandler(simulator), simulator_(simulator), times_(transfers) {}
  void on_event(std::uint64_t token) override {
    times_[token] = simulator_.now();
    ++count_;
  }
  [[nodiscard]] bool is_complete() const { return count_ == times_.size(); }
  [[nodiscard]] const std::vector<SimTime>& times() const { return times_; }

 private:
  Simulator& simulator_;
  std::vector<SimTime> times_;
  std::size_t count_ = 0;
};

}  // namespace

std::vector<Transfer> peer_transfers(const Cluster& cluster, Pairs pairs) {
  std::vector<Transfer> transfers;
  for (std::size_t a = 0; a < cluster.gpus.size(); ++a) {
    for (std::size_t b = pairs == Pairs::Unordered ? a + 1 : 0; b < cluster.gpus.size(); ++b) {
      if (a != b) {
        transfers.push_back({.source = cluster.gpus[a], .target = cluster.gpus[b]});
      }
    }
  }
  if (transfers.empty()) {
    throw ConfigError(
        fmt::format("{}: expected two GPUs or more to pair, found one", cluster.name));
  }
  return transfers;
}

std::vector<Transfer> host_transfers(const Cluster& cluster, HostDirection direction) {
  const Routing routing(cluster.topology, cluster.routing);
  std::vector<Transfer> transfers;
  for (const NodeId gpu : cluster.gpus) {
    const auto memory = routing.host_memory(gpu);
    if (!memory) {
      throw ConfigError(fmt::format("{}: expected a host memory that {} reaches, found none",
                                    cluster.name, cluster.topology.node(gpu).name));
    }
    transfers.push_back(direction == HostDirection::ToGpu
                            ? Transfer{.source = *memory, .target = gpu}
                            : Transfer{.source = gpu, .target = *memory});
  }
  return transfers;
}

std::vector<Transfer> with_opposites(std::span<const Transfer> transfers) {
  std::vector<Transfer> all;
  for (const Transfer& transfer : transfers) {
    all.push_back(transfer);
    all.push_back({.source = transfer.target, .target = transfer.source});
  }
  return all;
}

TransferTimes time_transfers(const Cluster& cluster, std::span<const Transfer> transfers,
                             const TransferSettings& settings) {
  Simulator simulator;
  Routing routing(cluster.topology, cluster.routing);
  const auto network = make_network(settings.fidelity, simulator, routing, settings.packet);
  Arrivals arrivals(simulator, transfers.size());
  std::uint32_t label = 0;
  for (const Transfer& transfer : transfers) {
    const ConnectionId connection = network->connect(
        {.source = transfer.source, .target = transfer.target, .flow_label = label});
    network->send(connection, settings.size, arrivals, label);
    ++label;
  }
  simulator.run();
  std::optional<std::string> complaint = network->complaint();
  CHECK(arrivals.is_complete() || complaint, "a transfer did not end");
  return {.times = arrivals.times(),
          .complaint = std::move(complaint),
          .port_counters = network->port_counters(),
          .samples = network->samples()};
}

std::vector<SimTime> run_transfers(const Cluster& cluster, std::span<const Transfer> transfers,
                                   Bytes size) {
  return time_transfers(cluster, transfers, {.size = size}).times;
}

double total_gigabytes_per_second(std::span<const SimTime> times, Bytes size) {
  CHECK(!times.empty(), "no transfers");
  const SimTime last = *std::ranges::max_element(times);
  if (last <= SimTime()) {
    return 0.0;
  }
  return static_cast<double>(size.count()) * static_cast<double>(times.size()) / last.seconds() /
         1e9;
}

}  // namespace trainyard
