// SPDX-License-Identifier: Apache-2.0
// An algorithm is one row of facts, from which everything outside its own file takes what it has to
// know. No code asks which algorithm it has.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "collectives/schedule/rank_layout.h"
#include "collectives/schedule/schedule.h"
#include "collectives/schedule/traffic_matrix.h"

namespace trainyard {

// The switches that add up one share of the data. Switches are relays, numbered from zero.
struct AggregationTree {
  struct Member {
    RankId head;             // The rank whose NIC leads to the tree.
    std::uint32_t turn = 0;  // Which of its NICs: the flow label.
    std::uint32_t leaf = 0;  // The switch that the NIC is on.
  };
  std::vector<Member> members;  // One per node.
  // The switch that joins the leaves, if they are not all the same one.
  std::optional<std::uint32_t> spine = {};
  // Which of the links between a leaf and the spine, where there are several.
  std::uint32_t trunk = 0;
};

struct ScheduleOptions {
  RankLayout layout;
  RankId root;
  // Pieces into which a channel cuts its share of the data, one behind the other: they fill the
  // pipeline of chains and trees. Ring all_reduce, all_gather and reduce_scatter repeat their steps
  // for each piece.
  int pieces = 1;
  // For sharp, one for each NIC of a server. Empty: one switch joins all ranks, each with a NIC;
  // the ranks of a smaller node take turns at what is left over.
  std::vector<AggregationTree> trees = {};
  // For ClusterNeed::Grid, the grid of ranks, its first dimension varying fastest. Empty: ranks of
  // a node x nodes where nodes are equal, one ring where they are not.
  std::vector<int> dimensions = {};
  // On such a grid, channel c begins with dimension c mod n of the n, and goes backwards where c /
  // n is odd; otherwise all channels are alike.
  bool rotate_dimensions = false;
  // All channels go the same ways, so each begins with another one of the NICs of a rank.
  bool are_alike = false;
  // For alltoallv, the bytes from each source to each target. None: the same everywhere.
  const TrafficMatrix* matrix = nullptr;
};

// The part that a cluster must have; aggregation.h finds it or says what is missing.
enum class ClusterNeed : std::uint8_t {
  Nothing,
  OneReducingSwitch,    // An NVSwitch that adds up and has all ranks.
  ReducingSwitches,     // Several, each with ranks in a row.
  ReducingSwitchTrees,  // Switches of the fabric that add up.
  TwoLevels,            // Several servers with several ranks in one of them.
  Grid,                 // Ranks that fill a grid of two or more dimensions (rank_grid.h).
  FabricGrid,           // The same on a grid fabric, of one or more dimensions.
};

// In which order channels visit the ranks (placement.h).
enum class ChannelOrder : std::uint8_t {
  Natural,  // In the order of their numbers, a channel for each NIC of a GPU; or as a grid has it.
  Rings,    // Along the rings of each server, evenly over its NICs.
  Walk,     // From neighbour to neighbour on a grid fabric; elsewhere as Rings.
};

// One partner in each of log2(ranks) rounds, or both directions of a tree or a switch.
[[nodiscard]] std::int64_t partner_each_round(Operation operation, const RankLayout& layout);
[[nodiscard]] std::int64_t one_chunk(Operation operation, const RankLayout& layout);

struct AlgorithmRow {
  std::string_view name;  // Name for --algo, and in the shape of its schedules.
  OperationSet operations;
  // The operation is one of them; make_schedule() has checked the options.
  std::unique_ptr<Schedule> (*build)(Operation operation, const ScheduleOptions& options);
  ClusterNeed need = ClusterNeed::Nothing;
  ChannelOrder order = ChannelOrder::Natural;
  // How many messages follow the first one on the longest path of a piece; 0 if pieces do not make
  // the operation faster. No function: the schedule does not cut its data into pieces.
  std::int64_t (*stages)(Operation operation, const RankLayout& layout) = nullptr;
  // The number of connections for each rank and channel, at most, with those that no step uses.
  std::int64_t (*partners)(Operation operation, const RankLayout& layout) = partner_each_round;
  // The number of chunks, or of entries of the listing, for each rank and channel, at most; without
  // pieces.
  std::int64_t (*chunks)(Operation operation, const RankLayout& layout) = one_chunk;
};

// An algorithm is known by the address of its row.
using Algorithm = const AlgorithmRow*;

[[nodiscard]] inline std::uint32_t rank_count(const ScheduleOptions& options) {
  return static_cast<std::uint32_t>(options.layout.ranks());
}

// Rounds in which a distance that doubles from 1 on passes all ranks.
[[nodiscard]] constexpr std::uint32_t doubling_rounds(std::uint32_t ranks) {
  return static_cast<std::uint32_t>(std::bit_width(ranks - 1));
}
// The rank 2^round ahead, or behind.
[[nodiscard]] constexpr std::uint32_t doubling_partner(std::uint32_t rank, std::uint32_t round,
                                                       bool ahead, std::uint32_t ranks) {
  return (rank + (ahead ? 1U << round : ranks - (1U << round))) % ranks;
}

// A schedule whose channels are alike, each with chunks, entries, lanes and connections of its own.
// The lanes go through all ranks, once or several times for each channel.
class ChannelSchedule : public Schedule {
 public:
  [[nodiscard]] RankId lane_rank(LaneId lane) const final { return RankId(lane.value() % ranks_); }

 protected:
  // The numbers of one channel.
  struct Extent {
    std::uint32_t chunks = 0;
    std::uint32_t connections = 0;
    std::uint32_t entries = 0;
    std::uint32_t lanes_of_rank = 1;
    bool rendezvous = false;
    std::vector<std::int64_t> chunk_cuts = {};  // For all channels (ScheduleShape).
  };
  ChannelSchedule(std::string_view algorithm, Operation operation, const ScheduleOptions& options,
                  const Extent& extent);
  [[nodiscard]] std::uint32_t ranks() const { return ranks_; }

 private:
  std::uint32_t ranks_;
};

// The builder of a row whose schedules are objects of one class.
template <typename Built>
std::unique_ptr<Schedule> build_schedule(Operation operation, const ScheduleOptions& options) {
  return std::make_unique<Built>(operation, options);
}

}  // namespace trainyard
