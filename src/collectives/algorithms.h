// SPDX-License-Identifier: Apache-2.0
// The algorithms by name, what each can do, and their schedules.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/rank_layout.h"
#include "collectives/schedule.h"

namespace trainyard {

enum class Algorithm : std::uint8_t { Ring, Tree, HalvingDoubling, Pairwise, Direct };

inline constexpr std::array kAlgorithms{Algorithm::Ring, Algorithm::Tree,
                                        Algorithm::HalvingDoubling, Algorithm::Pairwise,
                                        Algorithm::Direct};

// "ring", "tree", "halving-doubling", "pairwise", "direct".
[[nodiscard]] std::string_view to_string(Algorithm algorithm);
[[nodiscard]] std::optional<Algorithm> parse_algorithm(std::string_view name);
[[nodiscard]] bool supports(Algorithm algorithm, Operation operation);
// Those that support the operation, in the order of kAlgorithms.
[[nodiscard]] std::vector<Algorithm> algorithms_for(Operation operation);

struct ScheduleOptions {
  RankLayout layout;
  RankId root;
  // Pieces into which a channel cuts its share of the data, one behind the other: they fill the
  // pipeline of chains and trees. Ring all_reduce, all_gather and reduce_scatter repeat their steps
  // for each piece.
  int pieces = 1;
};

// The algorithm must support the operation, the root be a rank, and there be at least one rank.
[[nodiscard]] std::unique_ptr<Schedule> make_schedule(Algorithm algorithm, Operation operation,
                                                      const ScheduleOptions& options);

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

// The greatest number of steps between the root and a rank in the trees of tree_schedule; where
// nodes differ, at most this: as if the farthest node were the largest.
[[nodiscard]] int tree_depth(const RankLayout& layout);

}  // namespace trainyard
