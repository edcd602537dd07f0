// SPDX-License-Identifier: Apache-2.0
// All that NCCL decides once, when a communicator is made: nodes, graphs, channels, rings and trees
// over all ranks, the table of the tuner, channels for sends and receives.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nccl/search/graph.h"
#include "nccl/types/types.h"
#include "sim/units.h"

namespace trainyard::nccl {

inline constexpr int kNoRank = -1;

// One channel of the rings, over all ranks.
struct RingChannel {
  std::vector<int> order;  // Ranks, in the order in which data pass them; the last sends to the
                           // first.
  [[nodiscard]] bool operator==(const RingChannel&) const = default;
};

// One channel of the trees. Indexed by rank; kNoRank where there is none.
struct TreeChannel {
  std::vector<int> up;
  std::vector<std::array<int, 3>> down;
  [[nodiscard]] bool operator==(const TreeChannel&) const = default;
};

// The NICs (by `dev`) with which the ranks of one node enter and leave it, by channel; nothing on a
// single node. Both ends of a tree's connection use the same one.
struct NodeNics {
  std::vector<int> ring_in;
  std::vector<int> ring_out;
  std::vector<int> tree;
  std::vector<int> nvls;  // Indexed by head.
};

// One (function, algorithm, protocol) as the tuner sees it. `bandwidth` is algorithm bandwidth in
// GB/s, 0 where it is not available; `latency` microseconds.
struct TuningCell {
  double latency = 0.0;
  double bandwidth = 0.0;
  [[nodiscard]] bool operator==(const TuningCell&) const = default;
};

struct TuningTable {
  // [function][algorithm][protocol].
  std::array<std::array<std::array<TuningCell, 3>, 7>, 5> cells = {};
  // Threads at most, [algorithm][protocol].
  std::array<std::array<int, 3>, 7> max_threads = {};
  // Bytes per thread below which threads and channels are shed, [algorithm][protocol].
  std::array<std::array<std::int64_t, 3>, 7> thread_thresholds = {};

  [[nodiscard]] bool operator==(const TuningTable&) const = default;
  [[nodiscard]] const TuningCell& cell(Function function, Algorithm algorithm,
                                       Protocol protocol) const {
    return cells[static_cast<std::size_t>(function)][static_cast<std::size_t>(algorithm)]
                [static_cast<std::size_t>(protocol)];
  }
};

struct Communicator {
  Version version = kNewestVersion;
  int ranks = 0;
  int nodes = 0;                   // NVLink domains, as NCCL counts: an MNNVL rack is one.
  std::vector<int> first_rank;     // Indexed by node, with the number of ranks at the end.
  std::vector<int> node_kind;      // Indexed by node: index into graphs and nics.
  std::vector<GraphSet> graphs;    // Graphs by kind of node, as its own search found them.
  std::vector<NodeNics> nics;      // NICs by kind of node.
  GraphSet aligned;                // The least over all ranks, without orders of GPUs.
  int min_compute_capability = 0;  // 70, 80, 90, ...
  int max_compute_capability = 0;
  bool has_nvswitch = false;  // All GPUs of a node are on one.
  CpuKind cpu = CpuKind::Intel;
  int channels = 0;                // Channels of collectives.
  std::vector<RingChannel> rings;  // Indexed by channel.
  std::vector<TreeChannel> trees;  // Indexed by channel.
  int nvls_channels = 0;           // 0 without NVLS.
  int nvls_heads = 0;              // Heads of one node.
  // A connection with Simple has it, if it is not that of the environment.
  std::optional<Bytes> simple_buffer = {};
  Bytes nvls_chunk = kib(128);       // At most, and a step of its buffers.
  Bytes nvls_tree_chunk = kib(128);  // At most, where trees join the nodes.
  int p2p_channels = 0;
  int p2p_channels_per_peer = 0;
  Bytes p2p_chunk = kib(128);  // A step of sends and receives with Simple.
  TuningTable tuning;
  std::vector<std::string> remarks;  // Facts that the twin is not sure about.

  [[nodiscard]] int max_ranks_per_node() const {
    int max = 0;
    for (std::size_t node = 0; node + 1 < first_rank.size(); ++node) {
      max = std::max(max, first_rank[node + 1] - first_rank[node]);
    }
    return max;
  }
  [[nodiscard]] int min_ranks_per_node() const {
    int min = ranks;
    for (std::size_t node = 0; node + 1 < first_rank.size(); ++node) {
      min = std::min(min, first_rank[node + 1] - first_rank[node]);
    }
    return min;
  }
};

// "NCCL 2.30.7", or "RCCL" on AMD's GPUs.
[[nodiscard]] std::string release_of(const Communicator& communicator);

// Returns whether the two decide the same, on NICs that may have other numbers. Remarks do not
// count.
[[nodiscard]] bool differ_in_nics_alone(const Communicator& a, const Communicator& b);

}  // namespace trainyard::nccl
