// SPDX-License-Identifier: Apache-2.0
// Describes what NCCL's search finds on one node: for each pattern, channels with an order of GPUs
// and a NIC at each end (NVIDIA/nccl, src/graph/search.cc, struct ncclTopoGraph).
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "nccl/types/types.h"

namespace trainyard::nccl {

struct GraphChannel {
  // NICs by their `dev`, on several nodes only.
  std::optional<int> net_in = {};
  std::optional<int> net_out = {};
  // Local ranks, that is, GPUs of the node counted from zero in the order of their ranks. NVLS:
  // the head alone.
  std::vector<int> gpus = {};
  [[nodiscard]] bool operator==(const GraphChannel&) const = default;
};

// Bandwidths are GB/s (1e9 B/s) of one channel. Without channels where nothing was found.
struct Graph {
  GraphPattern pattern = GraphPattern::Ring;
  int cross_nic = 0;
  int channel_count = 0;
  double bw_intra = 0.0;
  double bw_inter = 0.0;
  double latency_inter = 0.0;  // Microseconds; the attribute `latency` of the NIC.
  PathType type_intra = PathType::Loc;
  PathType type_inter = PathType::Loc;
  bool same_channels = true;
  std::vector<GraphChannel> channels = {};  // As many as channel_count.
  [[nodiscard]] bool exists() const { return channel_count > 0; }
  [[nodiscard]] bool operator==(const Graph&) const = default;
};

// The graphs of a node. Ring and tree of a searched one always exist.
struct GraphSet {
  Graph ring = {};
  Graph tree = {};
  Graph nvls = {};
  Graph collnet_chain = {};
  Graph collnet_direct = {};
  // RCCL alone: the row of its tuning models, and what machines have that it knows
  // (rccl_topologies.h): schedules of MSCCL, and that every second node turns its rings round.
  int rccl_model = 0;
  bool has_msccl = false;
  bool alternates = false;

  friend bool operator==(const GraphSet&, const GraphSet&) = default;
};

inline constexpr std::array kGraphs{&GraphSet::ring, &GraphSet::tree, &GraphSet::nvls,
                                    &GraphSet::collnet_chain, &GraphSet::collnet_direct};

}  // namespace trainyard::nccl
