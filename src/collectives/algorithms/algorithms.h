// SPDX-License-Identifier: Apache-2.0
// The algorithms by name, what each can do, and their schedules.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule/rank_layout.h"
#include "collectives/schedule/schedule.h"
#include "collectives/schedule/traffic_matrix.h"

namespace trainyard {

enum class Algorithm : std::uint8_t {
  Ring,
  Tree,
  HalvingDoubling,
  Pairwise,
  Direct,
  Nvls,   // The NVSwitch of a server adds up and multicasts.
  Sharp,  // The switches of the fabric do.
  RecursiveDoubling,
  Bruck,
  Hierarchical,  // Inside the servers, then between them.
  MultiRing,     // Along the dimensions of a grid: the 2D torus and its kind.
  Pat,
  NvlsTree,  // NVLS inside, trees between.
  TwoHop,    // alltoall inside the servers, then along the rails.
  Dissemination,
};

inline constexpr std::array kAlgorithms{Algorithm::Ring,
                                        Algorithm::Tree,
                                        Algorithm::HalvingDoubling,
                                        Algorithm::Pairwise,
                                        Algorithm::Direct,
                                        Algorithm::Nvls,
                                        Algorithm::Sharp,
                                        Algorithm::RecursiveDoubling,
                                        Algorithm::Bruck,
                                        Algorithm::Hierarchical,
                                        Algorithm::MultiRing,
                                        Algorithm::Pat,
                                        Algorithm::NvlsTree,
                                        Algorithm::TwoHop,
                                        Algorithm::Dissemination};

// "ring", "tree", "halving-doubling", ...
[[nodiscard]] std::string_view to_string(Algorithm algorithm);
[[nodiscard]] std::optional<Algorithm> parse_algorithm(std::string_view name);
// On some cluster; whether on a given one, placement.h knows.
[[nodiscard]] bool supports(Algorithm algorithm, Operation operation);
// Those that support the operation, in the order of kAlgorithms.
[[nodiscard]] std::vector<Algorithm> algorithms_for(Operation operation);

// The switches that add up one share of the data. Switches are relays, numbered from zero.
struct AggregationTree {
  struct Member {
    RankId head;             // The rank whose NIC leads to the tree.
    std::uint32_t turn = 0;  // Which of its NICs: the flow label.
    std::uint32_t leaf = 0;  // The switch that the NIC is on.
  };
  std::vector<Member> members;  // By node.
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
  // Of sharp: one for each NIC of a server. Empty: one switch joins all ranks, each with a NIC; the
  // ranks of a smaller node take turns at what is left over.
  std::vector<AggregationTree> trees = {};
  // Of multi-ring: the grid of ranks, its first dimension varying fastest. Empty: ranks of a node x
  // nodes where nodes are equal, one ring where they are not.
  std::vector<int> dimensions = {};
  // Of multi-ring: channel c begins with dimension c mod n of the n, and goes backwards where c / n
  // is odd; otherwise all channels are alike.
  bool rotate_dimensions = false;
  // Of alltoallv: the bytes from each source to each target. None: the same everywhere.
  const TrafficMatrix* matrix = nullptr;
};

// The algorithm must support the operation, the root be a rank, and there be at least one rank.
[[nodiscard]] std::unique_ptr<Schedule> make_schedule(Algorithm algorithm, Operation operation,
                                                      const ScheduleOptions& options);

// Whether cutting the data into pieces makes the operation faster.
[[nodiscard]] bool has_pipeline(Algorithm algorithm, Operation operation);

// How many pieces to use for a size: one, unless the algorithm pipelines the operation. Then the
// filling of the pipeline should cost little, 1/32 of the time, but no piece be smaller than 8 KiB.
[[nodiscard]] int default_pieces(Algorithm algorithm, Operation operation, const RankLayout& layout,
                                 Bytes size);

// The constructors of the single files.
[[nodiscard]] std::unique_ptr<Schedule> ring_schedule(Operation operation,
                                                      const ScheduleOptions& options);
[[nodiscard]] std::unique_ptr<Schedule> tree_schedule(Operation operation,
                                                      const ScheduleOptions& options);
[[nodiscard]] std::unique_ptr<Schedule> halving_doubling_schedule(Operation operation,
                                                                  const ScheduleOptions& options);
[[nodiscard]] std::unique_ptr<Schedule> pairwise_schedule(Operation operation,
                                                          const ScheduleOptions& options);
[[nodiscard]] std::unique_ptr<Schedule> direct_schedule(Operation operation,
                                                        const ScheduleOptions& options);
[[nodiscard]] std::unique_ptr<Schedule> nvls_schedule(Operation operation,
                                                      const ScheduleOptions& options);
[[nodiscard]] std::unique_ptr<Schedule> sharp_schedule(Operation operation,
                                                       const ScheduleOptions& options);
[[nodiscard]] std::unique_ptr<Schedule> recursive_doubling_schedule(Operation operation,
                                                                    const ScheduleOptions& options);
[[nodiscard]] std::unique_ptr<Schedule> bruck_schedule(Operation operation,
                                                       const ScheduleOptions& options);
[[nodiscard]] std::unique_ptr<Schedule> hierarchical_schedule(Operation operation,
                                                              const ScheduleOptions& options);
[[nodiscard]] std::unique_ptr<Schedule> multi_ring_schedule(Operation operation,
                                                            const ScheduleOptions& options);
[[nodiscard]] std::unique_ptr<Schedule> pat_schedule(Operation operation,
                                                     const ScheduleOptions& options);
[[nodiscard]] std::unique_ptr<Schedule> nvls_tree_schedule(Operation operation,
                                                           const ScheduleOptions& options);
[[nodiscard]] std::unique_ptr<Schedule> two_hop_schedule(Operation operation,
                                                         const ScheduleOptions& options);
[[nodiscard]] std::unique_ptr<Schedule> dissemination_schedule(Operation operation,
                                                               const ScheduleOptions& options);

// Of the double tree on n numbers: the parents in the tree of this channel (even channels have the
// first, odd ones the second), kNoParent at the root.
inline constexpr std::uint32_t kNoParent = 0xffff'ffff;
[[nodiscard]] std::vector<std::uint32_t> double_tree_parents(std::uint32_t n,
                                                             std::uint32_t channel);

// The greatest number of steps between the root and a rank in the trees of tree_schedule; where
// nodes differ, at most this: as if the farthest node were the largest.
[[nodiscard]] int tree_depth(const RankLayout& layout);

}  // namespace trainyard
