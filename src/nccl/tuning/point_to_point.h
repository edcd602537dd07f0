// SPDX-License-Identifier: Apache-2.0
// Sends and receives, of which all-to-all is made: how many channels there are, in which order a
// rank meets its peers, and how one send is cut (NVIDIA/nccl: src/graph/paths.cc,
// ncclTopoComputeP2pChannels; src/init.cc, ncclP2pSchedule; src/enqueue.cc, addP2pToPlan).
#pragma once

#include <cstdint>
#include <vector>

#include "nccl/tuning/communicator.h"
#include "nccl/types/environment.h"
#include "nccl/types/types.h"
#include "sim/units.h"

namespace trainyard::nccl {

// The path of one rank to one peer.
struct PeerPath {
  enum class Kind : std::uint8_t { NvLink, Pcie, Network };
  Kind kind = Kind::NvLink;
  double bandwidth = 0.0;       // NvLink: GB/s of the path. Network: of all NICs of the GPU.
  double link_bandwidth = 0.0;  // NvLink: of one link.
  int nics = 0;                 // Network: of the GPU.
};

// Sets p2p_channels and p2p_channels_per_peer, both powers of two, and p2p_chunk of a communicator
// that has the rest. `peers`: each kind of pair that occurs at least once.
void set_up_point_to_point(Communicator& communicator, const std::vector<PeerPath>& peers,
                           const Environment& environment);

// A rank sends to one peer and receives from another at once.
struct PointToPointRound {
  int send_to = 0;
  int receive_from = 0;
  [[nodiscard]] bool operator==(const PointToPointRound&) const = default;
};

// Ranks that go through the rounds together: the greatest number that divides the ranks of all
// nodes and NCCL_P2P_SCHEDULE_GROUP_SIZE; all ranks of a single node. `first_rank` by node, and the
// number of ranks at its end.
[[nodiscard]] int schedule_group_size(const std::vector<int>& first_rank,
                                      const Environment& environment);

// All rounds of a rank, as many as there are ranks; the first one is with itself.
[[nodiscard]] std::vector<PointToPointRound> point_to_point_schedule(int rank, int ranks,
                                                                     int group_size);

// Channel of part `part` of what a rank does in a round.
[[nodiscard]] int channel_of_part(int round, int part, int channels, int nodes, int group_size);

// One send or receive.
struct PointToPointPlan {
  Protocol protocol = Protocol::Simple;
  int parts = 1;  // Each on a channel of its own.
  Bytes part;     // Size of all parts but the last ones, which have what is left, or nothing.
  Bytes chunk;    // Data of one step.
  [[nodiscard]] Bytes bytes_of_part(int index, Bytes bytes) const;
};

// `network`: the peer is reached by NICs.
[[nodiscard]] PointToPointPlan plan_point_to_point(const Communicator& communicator,
                                                   const Environment& environment, Bytes bytes,
                                                   bool network);

// The rounds, at most eight, whose pairs run side by side in one block of threads.
using PointToPointBatch = std::vector<int>;

// The batches of each channel, which it runs one after the other. `parts` by round: on how many
// channels the round works, 0 where a rank has nothing to do.
[[nodiscard]] std::vector<std::vector<PointToPointBatch>> point_to_point_batches(
    const std::vector<int>& parts, int channels, int nodes, int group_size,
    const Environment& environment);

}  // namespace trainyard::nccl
