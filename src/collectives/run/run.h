// SPDX-License-Identifier: Apache-2.0
// One collective on an otherwise idle cluster, from placement to time, with the plain runtime.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "network/contract/network.h"
#include "network/engines/network_extras.h"
#include "network/packet/packet_options.h"
#include "sim/trace.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct CollectiveJob {
  Operation operation = Operation::AllReduce;
  Algorithm algorithm = &kRing;
  // In the sense of nccl-tests; see aligned_size.
  Bytes size{};
  RankId root{};
  std::optional<int> channels = {};  // Otherwise those of place().
  std::optional<Bytes> piece = {};   // Pipeline piece; otherwise default_pieces().
  Fidelity fidelity = Fidelity::Flow;
  PacketOptions packet = roce_options();  // For Fidelity::Packet.
  TraceRecorder* trace = nullptr;
  // For alltoallv, of as many ranks as the cluster has; `size` is then its largest(). Without one
  // every pair exchanges size / ranks.
  const TrafficMatrix* matrix = nullptr;
  bool keeps_counters = false;  // Port counters, for the result; and samples, if `packet` has them.
  // Instead of `algorithm`: a schedule of as many ranks as the cluster has, without relays.
  const Schedule* schedule = nullptr;
  NetworkExtras extras = {};
};

// The link that was busy for the largest share of the time.
struct Bottleneck {
  LinkId link;
  double utilisation = 0.0;  // Bytes over capacity times time.
};

struct CollectiveResult {
  SimTime time = {};
  int channels = 0;
  int pieces = 1;
  std::vector<std::string> remarks = {};  // Remarks of the placement.
  std::uint64_t fingerprint = 0;
  NetworkStats network;
  std::optional<Bottleneck> bottleneck = {};  // None if nothing was carried.
  // Why the network never was complete, in which case `time` says nothing; and its port counters.
  std::optional<std::string> complaint = {};
  std::optional<std::vector<PortCounters>> port_counters = {};
  std::optional<PacketSamples> samples = {};
  std::vector<LinkUse> link_use = {};  // The load of each link that carried anything.
  ExtraResults extras = {};
};

// How far runs are, for whoever waits for them: written while they run, read by another thread.
struct TransferProgress {
  std::atomic<std::uint64_t> runs{0};  // Runs that have begun,
  std::atomic<std::uint64_t> all{0};   // the transfers of all of them,
  std::atomic<std::uint64_t> done{0};  // and those that began, but for the last few.
};

// The cluster must have the ranks that the algorithm needs, the root among them, and the algorithm
// support the operation. Throws ConfigError if the cluster cannot run it (aggregation.h), if two
// ranks cannot reach each other, or if the pieces, chunks or connections would be too many; CHECKs
// the contract of executor.h where the network has no complaint.
[[nodiscard]] CollectiveResult run_collective(const Cluster& cluster, const CollectiveJob& job,
                                              TransferProgress* progress = nullptr);

// Returns what CollectiveResult::link_use would be, without a run where each message takes one
// path: all that a connection carries, on its route. `routing` is of the cluster. Throws as
// run_collective(), for jobs without a schedule of their own.
[[nodiscard]] std::vector<LinkUse> link_use_of(const Cluster& cluster, Routing& routing,
                                               const CollectiveJob& job);

// A communicator beside others on one network.
struct CommunicatorJob {
  std::vector<int> ranks;  // Ranks of the cluster, each once, rising.
  CollectiveJob job;       // Without a schedule and counters.
  SimTime start = {};
};

struct SharedRun {
  std::vector<SimTime> ends = {};  // When each is complete, in the order given.
  std::vector<int> channels = {};
  std::uint64_t fingerprint = 0;
  NetworkStats network = {};
  std::vector<LinkUse> link_use = {};         // The load of all, as of CollectiveResult.
  std::optional<std::string> complaint = {};  // See CollectiveResult; there are no ends then.
};

// Runs all at once on one network, each from its start; those that share GPUs do not wait for each
// other. The engine and its options are those of the first; with the analytical one no end is
// before Network::quiet_time(). Throws as run_collective() does.
[[nodiscard]] SharedRun run_together(const Cluster& cluster, std::span<const CommunicatorJob> jobs);

// Why the job cannot run though the cluster has what its algorithm needs: the first two of its
// partners between which no path leads. Looks at every connection, so ask only where
// describe_unreachable() (topology/cluster/reach.h) has found something.
[[nodiscard]] std::optional<std::string> path_error(const Cluster& cluster,
                                                    const CollectiveJob& job);

// The size that nccl-tests would run for a wanted one: operations that give every rank its own part
// (all_gather, reduce_scatter, alltoall, scatter, gather) round that part down to 16 bytes; so does
// alltoallv without a matrix
// (common.cu and the *GetCollByteCount functions of nccl-tests). Zero if nothing is left.
[[nodiscard]] Bytes aligned_size(Operation operation, Bytes size, int ranks);

}  // namespace trainyard
