// SPDX-License-Identifier: Apache-2.0
// A collective on a shipped cluster as the program places it, with what every link carried.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "network/contract/network.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// A cluster of configs/clusters.
[[nodiscard]] Cluster shipped_cluster(const std::string& name, const ClusterOverrides& overrides);

struct PlacedJob {
  Algorithm algorithm = &kRing;
  Operation operation = Operation::AllReduce;
  Bytes size{};
  int pieces = 1;
  std::uint32_t root = 0;
  std::optional<int> channels = 1;  // Otherwise those of place().
};

struct PlacedRun {
  SimTime finish;
  std::map<LinkId, std::int64_t> bytes;  // Of links that carried anything.
};

// In the flow engine; requires that the contract is kept.
[[nodiscard]] PlacedRun run_placed(const Cluster& cluster, const PlacedJob& job);

// What the links from nodes of one kind to nodes of another carried, each once, ascending; links
// that carried nothing are left out.
[[nodiscard]] std::vector<std::int64_t> loads(const Topology& topology, const PlacedRun& run,
                                              NodeKind source, NodeKind target);

}  // namespace trainyard
