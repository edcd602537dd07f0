// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/algorithms.h"

#include <algorithm>
#include <bit>

namespace trainyard {

std::string_view to_string(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::Ring:
      return "ring";
    case Algorithm::Tree:
      return "tree";
    case Algorithm::HalvingDoubling:
      return "halving-doubling";
    case Algorithm::Pairwise:
      return "pairwise";
    case Algorithm::Direct:
      return "direct";
    case Algorithm::Nvls:
      return "nvls";
    case Algorithm::Sharp:
      return "sharp";
    case Algorithm::RecursiveDoubling:
      return "recursive-doubling";
    case Algorithm::Bruck:
      return "bruck";
    case Algorithm::Hierarchical:
      return "hierarchical";
    case Algorithm::MultiRing:
      return "multi-ring";
    case Algorithm::Pat:
      return "pat";
    case Algorithm::NvlsTree:
      return "nvls-tree";
    case Algorithm::TwoHop:
      return "two-hop";
    case Algorithm::Dissemination:
      return "dissemination";
  }
  CHECK(false, "unknown algorithm");
}

std::optional<Algorithm> parse_algorithm(std::string_view name) {
  for (const Algorithm algorithm : kAlgorithms) {
    if (to_string(algorithm) == name) {
      return algorithm;
    }
  }
  return std::nullopt;
}

bool supports(Algorithm algorithm, Operation operation) {
  const bool reduces_all = operation == Operation::AllReduce;
  const bool gathers_all = operation == Operation::AllGather;
  const bool is_half = gathers_all || operation == Operation::ReduceScatter;
  const bool is_rooted = operation == Operation::Broadcast || operation == Operation::Reduce;
  const bool exchanges = operation == Operation::AllToAll;
  const bool exchanges_any = exchanges || operation == Operation::AllToAllV;
  switch (algorithm) {
    case Algorithm::Ring:
    case Algorithm::Nvls:
      return reduces_all || is_half || is_rooted;
    case Algorithm::Tree:
      return reduces_all || is_rooted;
    case Algorithm::HalvingDoubling:
    case Algorithm::Hierarchical:
    case Algorithm::MultiRing:
      return reduces_all || is_half;
    case Algorithm::Pat:
      return is_half;
    case Algorithm::RecursiveDoubling:
      return reduces_all || gathers_all;
    case Algorithm::Bruck:
      return gathers_all || exchanges;
    case Algorithm::Sharp:
    case Algorithm::NvlsTree:
      return reduces_all;
    case Algorithm::TwoHop:
      return exchanges;
    case Algorithm::Pairwise:
      return exchanges_any;
    case Algorithm::Direct:
      return exchanges_any || operation == Operation::SendReceive ||
             operation == Operation::Scatter || operation == Operation::Gather;
    case Algorithm::Dissemination:
      return operation == Operation::Barrier;
  }
  CHECK(false, "unknown algorithm");
}

std::vector<Algorithm> algorithms_for(Operation operation) {
  std::vector<Algorithm> able;
  std::ranges::copy_if(kAlgorithms, std::back_inserter(able),
                       [&](Algorithm algorithm) { return supports(algorithm, operation); });
  return able;
}

std::unique_ptr<Schedule> make_schedule(Algorithm algorithm, Operation operation,
                                        const ScheduleOptions& options) {
  CHECK(supports(algorithm, operation), "the algorithm cannot do the operation");
  CHECK(options.layout.ranks() >= 1, "a collective of no ranks");
  CHECK(options.layout.channels() >= 1, "a collective of no channels");
  CHECK(options.root.value() < static_cast<std::uint32_t>(options.layout.ranks()),
        "the root is no rank");
  CHECK(options.pieces >= 1, "a collective of no pieces");
  CHECK(options.matrix == nullptr || operation == Operation::AllToAllV,
        "a matrix is for alltoallv");
  CHECK(options.matrix == nullptr || options.matrix->ranks == options.layout.ranks(),
        "a matrix has a row for each rank");
  switch (algorithm) {
    case Algorithm::Ring:
      return ring_schedule(operation, options);
    case Algorithm::Tree:
      return tree_schedule(operation, options);
    case Algorithm::HalvingDoubling:
      return halving_doubling_schedule(operation, options);
    case Algorithm::Pairwise:
      return pairwise_schedule(operation, options);
    case Algorithm::Direct:
      return direct_schedule(operation, options);
    case Algorithm::Nvls:
      return nvls_schedule(operation, options);
    case Algorithm::Sharp:
      return sharp_schedule(operation, options);
    case Algorithm::RecursiveDoubling:
      return recursive_doubling_schedule(operation, options);
    case Algorithm::Bruck:
      return bruck_schedule(operation, options);
    case Algorithm::Hierarchical:
      return hierarchical_schedule(operation, options);
    case Algorithm::MultiRing:
      return multi_ring_schedule(operation, options);
    case Algorithm::Pat:
      return pat_schedule(operation, options);
    case Algorithm::NvlsTree:
      return nvls_tree_schedule(operation, options);
    case Algorithm::TwoHop:
      return two_hop_schedule(operation, options);
    case Algorithm::Dissemination:
      return dissemination_schedule(operation, options);
  }
  CHECK(false, "unknown algorithm");
}

bool has_pipeline(Algorithm algorithm, Operation operation) {
  switch (algorithm) {
    case Algorithm::Tree:
    case Algorithm::Nvls:
    case Algorithm::Sharp:
    case Algorithm::NvlsTree:
      return true;
    case Algorithm::Ring:
      return operation == Operation::Broadcast || operation == Operation::Reduce;
    default:
      return false;
  }
}

namespace {

// Messages that follow one another from the first to the last rank that a piece reaches, beside the
// first.
std::int64_t pipeline_stages(Algorithm algorithm, Operation operation, const RankLayout& layout) {
  if (!has_pipeline(algorithm, operation)) {
    return 0;
  }
  switch (algorithm) {
    case Algorithm::Tree:
      return tree_depth(layout);
    case Algorithm::Nvls:
      return operation == Operation::AllReduce ? 2 : 1;  // To the switch and back.
    case Algorithm::Sharp:
      return 4;  // To the heads, to the switches, and back.
    case Algorithm::NvlsTree:
      // To the switch and the heads, up and down a tree, and back.
      return 2 + 2 * std::bit_width(static_cast<unsigned>(layout.nodes() - 1)) + 2;
    default:
      return layout.ranks() - 1;
  }
}

}  // namespace

int default_pieces(Algorithm algorithm, Operation operation, const RankLayout& layout, Bytes size) {
  constexpr std::int64_t kPiecesPerStage = 32;
  constexpr std::int64_t kLeastPiece = 8 * 1024;
  const std::int64_t stages = pipeline_stages(algorithm, operation, layout);
  const std::int64_t share = size.count() / layout.channels();
  return static_cast<int>(std::clamp<std::int64_t>(
      share / kLeastPiece, 1, std::max<std::int64_t>(1, kPiecesPerStage * stages)));
}

}  // namespace trainyard
