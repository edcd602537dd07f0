// SPDX-License-Identifier: Apache-2.0
#include "collectives/run.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>

#include "collectives/executor.h"
#include "collectives/placement.h"
#include "sim/config_error.h"

namespace trainyard {

namespace {

// A message is a few hundred bytes of state on a connection that it may wait for, and chunks are
// counted in 32 bits. 4,096 ranks can do an alltoall on one channel.
constexpr std::int64_t kMostPieces = 65'536;
constexpr std::int64_t kMostConnections = 16'777'216;
constexpr std::int64_t kMostChunks = 2'147'483'648;

int pieces_of(const CollectiveJob& job, const RankLayout& layout) {
  if (!job.piece) {
    return default_pieces(job.algorithm, job.operation, layout, job.size);
  }
  const std::int64_t share = job.size.count() / layout.channels();
  const std::int64_t pieces = (share + job.piece->count() - 1) / job.piece->count();
  if (pieces > kMostPieces) {
    throw ConfigError(fmt::format(
        "--chunk: expected at least {} for {} ({} pieces on each of {} channels), found {}",
        to_string(Bytes((share + kMostPieces - 1) / kMostPieces)), to_string(job.size), kMostPieces,
        layout.channels(), to_string(*job.piece)));
  }
  return std::max(1, static_cast<int>(pieces));
}

// Refuses what would not fit, before anything is allocated.
void check_extent(const CollectiveJob& job, const RankLayout& layout, int pieces) {
  const std::int64_t ranks = layout.ranks();
  const std::int64_t channels = layout.channels();
  const bool all_pairs = job.operation == Operation::AllToAll;
  // At most: a partner for each round of halving and doubling, both ways of a tree, four of a
  // switch, both ways of every pair in a server and of its switch.
  const std::int64_t partners =
      all_pairs ? ranks
      : job.algorithm == Algorithm::Sharp
          ? 2 * layout.most_ranks_per_node() + 2
          : std::max(4, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(ranks))));
  const std::int64_t connections = channels * ranks * partners;
  if (connections > kMostConnections) {
    throw ConfigError(fmt::format(
        "{} of {} ranks on {} channels: expected at most {} connections, found {}; use fewer ranks "
        "or --channels",
        to_string(job.operation), ranks, channels, kMostConnections, connections));
  }
  const std::int64_t chunks = channels * ranks * (all_pairs ? ranks : pieces);
  if (chunks > kMostChunks) {
    throw ConfigError(fmt::format(
        "{} of {} ranks on {} channels: expected at most {} chunks, found {}; use a larger --chunk "
        "or fewer --channels",
        to_string(job.operation), ranks, channels, kMostChunks, chunks));
  }
}

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
  Routing routing(cluster.topology, cluster.routing);
  const Placement placement = place(cluster, routing, job.algorithm, job.channels);
  const int channels = placement.layout.channels();
  const int pieces = pieces_of(job, placement.layout);
  check_extent(job, placement.layout, pieces);
  const auto schedule = make_schedule(
      job.algorithm, job.operation,
      {.layout = placement.layout, .root = job.root, .pieces = pieces, .trees = placement.trees});

  Simulator simulator;
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
          .remarks = placement.remarks,
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
