// SPDX-License-Identifier: Apache-2.0
// Leads from what the search found on each node to the channels of a communicator: rings and trees
// over all ranks (NVIDIA/nccl, src/graph/connect.cc: ncclTopoPreset, ncclTopoPostset; src/init.cc).
//
// 1. All ranks take the least of what any found: number of channels, bandwidth, same channels; and
//    the worst path type, crossNic and tree pattern.
// 2. Ring c goes from the last GPU of node n to the first one of node n + 1. Where the rings of a
//    node cross NICs (crossNic 2), odd nodes swap rings c and c ^ 1, so that each hop stays on its
//    rail.
// 3. Trees: a chain inside a node, the double binary tree between nodes; its first tree on channel
//    c, its second one on its copy.
// 4. Channels are doubled, then adapted to CollNet, to few fast rings, and to the user's limits.
#pragma once

#include <vector>

#include "nccl/tuning/communicator.h"

namespace trainyard::nccl {

// The limits that the user sets. First `most` cuts, then copies of what is left make up for
// `least`.
struct ChannelLimits {
  int min = 0;             // NCCL_MIN_NCHANNELS, NCCL_MIN_CTAS.
  int max = kMaxChannels;  // NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS.
};

// Fills aligned, nics, channels, rings, trees and nvls_heads. The communicator has its version,
// ranks, nodes, first_rank, node_kind, graphs and min_compute_capability already; the graphs of a
// node name each of its ranks once in every channel. Where odd nodes swap their rings they become
// kinds of their own: nodes of one kind have the same graphs and the same NICs.
void connect(Communicator& communicator, const ChannelLimits& limits);

// Returns the graphs that all ranks agree on: step 1 of the above.
[[nodiscard]] GraphSet aligned_graphs(const std::vector<GraphSet>& graphs);

}  // namespace trainyard::nccl
