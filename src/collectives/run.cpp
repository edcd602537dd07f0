// SPDX-License-Identifier: Apache-2.0
#include "collectives/run.h"

#include <algorithm>

#include "collectives/executor.h"
#include "collectives/placement.h"

namespace trainyard {

namespace {

constexpr std::int64_t kMostPieces = 65'536;

std::optional<Bottleneck> busiest_link(const Network& network, const Topology& topology,
                                       SimTime time) {
  std::optional<Bottleneck> busiest;
  for (const LinkUse& use : network.link_use()) {
    const double busy = transfer_time(use.bytes, topology.link(use.link).spec.bandwidth) / time;
    if (!busiest || busy > busiest->utilisation) {
      busiest = {.link = use.link, .utilisation = busy};
    }
  }
  return busiest;
}

}  // namespace

CollectiveResult run_collective(const Cluster& cluster, const CollectiveJob& job) {
  const Placement placement = place(cluster, job.algorithm, job.channels);
  const int channels = placement.layout.channels();
  int pieces = default_pieces(job.algorithm, job.operation, placement.layout, job.size);
  if (job.piece) {
    const std::int64_t share = job.size.count() / channels;
    pieces = static_cast<int>(std::clamp<std::int64_t>(
        (share + job.piece->count() - 1) / job.piece->count(), 1, kMostPieces));
  }
  const auto schedule =
      make_schedule(job.algorithm, job.operation,
                    {.layout = placement.layout, .root = job.root, .pieces = pieces});

  Simulator simulator;
  Routing routing(cluster.topology, cluster.routing);
  const auto network = make_network(job.fidelity, simulator, routing);
  Executor executor(simulator, *network, *schedule, placement.nodes, job.size, job.trace);
  executor.start();
  simulator.run();
  const std::optional<std::string> violation = executor.contract_violation();
  CHECK(!violation, *violation);

  const SimTime time = executor.finish_time();
  return {.time = time,
          .channels = channels,
          .pieces = pieces,
          .fingerprint = simulator.fingerprint(),
          .network = network->stats(),
          .bottleneck = busiest_link(*network, cluster.topology, time)};
}

Bytes aligned_size(Operation operation, Bytes size, int ranks) {
  switch (operation) {
    case Operation::AllGather:
    case Operation::ReduceScatter:
    case Operation::AllToAll:
    case Operation::Scatter:
    case Operation::Gather: {
      constexpr std::int64_t kAlignment = 16;
      const std::int64_t part = size.count() / ranks / kAlignment * kAlignment;
      return Bytes(part * ranks);
    }
    default:
      return size;
  }
}

}  // namespace trainyard
