// SPDX-License-Identifier: Apache-2.0
// The list of all algorithms. Each is a row that its own file defines.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "collectives/algorithms/algorithm.h"

namespace trainyard {

extern const AlgorithmRow kRing;
extern const AlgorithmRow kTree;
extern const AlgorithmRow kHalvingDoubling;     // From the nearest partner on,
extern const AlgorithmRow kHalvingDoublingFar;  // and from the farthest.
extern const AlgorithmRow kPairwise;
extern const AlgorithmRow kDirect;
extern const AlgorithmRow kNvls;   // The NVSwitch of a server adds up and multicasts.
extern const AlgorithmRow kSharp;  // The switches of the fabric do.
extern const AlgorithmRow kRecursiveDoubling;
extern const AlgorithmRow kBruck;
extern const AlgorithmRow kHierarchical;  // Inside the servers, then between them.
extern const AlgorithmRow kMultiRing;  // Along the dimensions of a grid: the 2D torus and its kind.
extern const AlgorithmRow kPat;
extern const AlgorithmRow kNvlsTree;  // NVLS inside, trees between.
extern const AlgorithmRow kTwoHop;    // alltoall inside the servers, then along the rails.
extern const AlgorithmRow kDissemination;
extern const AlgorithmRow kSwing;  // Along the dimensions of a torus, in few steps.

// In the order in which they are listed and tried.
inline constexpr std::array kAlgorithms{
    &kRing,
    &kTree,
    &kHalvingDoubling,
    &kHalvingDoublingFar,
    &kPairwise,
    &kDirect,
    &kNvls,
    &kSharp,
    &kRecursiveDoubling,
    &kBruck,
    &kHierarchical,
    &kMultiRing,
    &kPat,
    &kNvlsTree,
    &kTwoHop,
    &kDissemination,
    &kSwing,
};

[[nodiscard]] constexpr std::string_view to_string(Algorithm algorithm) {
  return algorithm->name;
}
[[nodiscard]] std::optional<Algorithm> parse_algorithm(std::string_view name);
// On some cluster; whether on a given one, placement.h knows.
[[nodiscard]] constexpr bool supports(Algorithm algorithm, Operation operation) {
  return algorithm->operations.contains(operation);
}
// Those that support the operation, in the order of kAlgorithms.
[[nodiscard]] std::vector<Algorithm> algorithms_for(Operation operation);
// The one that the plain runtime of a training step takes: rings, or for operations that rings
// cannot do, the direct exchange.
[[nodiscard]] Algorithm default_algorithm(Operation operation);

// The algorithm must support the operation, the root be a rank, and there be at least one rank.
[[nodiscard]] std::unique_ptr<Schedule> make_schedule(Algorithm algorithm, Operation operation,
                                                      const ScheduleOptions& options);

// How many pieces to use for a size: one, unless the algorithm pipelines the operation. Then the
// filling of the pipeline should cost little, 1/32 of the time, but no piece be smaller than 8 KiB.
[[nodiscard]] int default_pieces(Algorithm algorithm, Operation operation, const RankLayout& layout,
                                 Bytes size);

// Returns the parents in the double tree on n numbers, in the tree of this channel (even channels
// have the first, odd ones the second), kNoParent at the root.
inline constexpr std::uint32_t kNoParent = 0xffff'ffff;
[[nodiscard]] std::vector<std::uint32_t> double_tree_parents(std::uint32_t n,
                                                             std::uint32_t channel);

// The greatest number of steps between the root and a rank in the trees of tree_schedule; where
// nodes differ, at most this: as if the farthest node were the largest.
[[nodiscard]] int tree_depth(const RankLayout& layout);

}  // namespace trainyard
