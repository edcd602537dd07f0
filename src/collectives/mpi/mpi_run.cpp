// SPDX-License-Identifier: Apache-2.0
#include "collectives/mpi/mpi_run.h"

#include <spdlog/fmt/fmt.h>

#include "collectives/mpi/mpi_executor.h"
#include "network/engines/make_network.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Chunks of alltoall are listed message by message: log2(N) N^2 / 2 entries of Bruck's.
void check_held(int ranks, std::string_view runtime) {
  constexpr int kMaxRanks = 1'024;
  if (ranks > kMaxRanks) {
    throw ConfigError(fmt::format("--runtime {}: expected at most {} ranks, found {}", runtime,
                                  kMaxRanks, ranks));
  }
}

}  // namespace

std::vector<NodeId> mpi_nodes(const Cluster& cluster, std::string_view runtime) {
  check_held(static_cast<int>(cluster.gpus.size()), runtime);
  const Routing routing(cluster.topology, cluster.routing);
  std::vector<NodeId> nodes;
  for (const NodeId gpu : cluster.gpus) {
    const std::optional<NodeId> memory = routing.host_memory(gpu);
    if (!memory) {
      throw ConfigError(fmt::format(
          "--runtime {}: expected servers with CPUs, whose memory has the ranks, found {} without",
          runtime, cluster.topology.node(gpu).name));
    }
    nodes.push_back(*memory);
  }
  return nodes;
}

MpiTiming time_mpi(const Cluster& cluster, const std::vector<NodeId>& nodes, std::string_view name,
                   const MpiCall& call, const MpiRules& rules, const MpiProfile& profile,
                   Fidelity fidelity, const PacketOptions& packet, TraceRecorder* trace) {
  const auto schedule = mpi_schedule(name, call, rules);
  Routing routing(cluster.topology, cluster.routing);
  Simulator simulator;
  const auto network = make_network(fidelity, simulator, routing, packet);
  MpiExecutor executor(simulator, *network, cluster.topology, *schedule, nodes, profile, call.size,
                       mpi_under_way(name, call), trace);
  executor.start(mpi_copies(name, call));
  simulator.run();
  MpiTiming timing{.messages = executor.messages(),
                   .fingerprint = simulator.fingerprint(),
                   .link_use = network->link_use(),
                   .complaint = network->complaint()};
  if (!timing.complaint) {
    const std::optional<SimTime> end = executor.finish_time();
    CHECK(end.has_value(), "all ranks end");
    timing.time = *end;
  }
  return timing;
}

}  // namespace trainyard
