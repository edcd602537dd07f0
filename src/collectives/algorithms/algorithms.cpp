// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/algorithms.h"

#include <algorithm>
#include <bit>

namespace trainyard {
namespace {

std::uint32_t channel_count(const ScheduleOptions& options) {
  return static_cast<std::uint32_t>(options.layout.channels());
}

}  // namespace

std::int64_t partner_each_round(Operation /*operation*/, const RankLayout& layout) {
  return std::max<std::int64_t>(4, std::bit_width(static_cast<std::uint32_t>(layout.ranks())));
}

std::int64_t one_chunk(Operation /*operation*/, const RankLayout& /*layout*/) {
  return 1;
}

ChannelSchedule::ChannelSchedule(std::string_view algorithm, Operation operation,
                                 const ScheduleOptions& options, const Extent& extent)
    : Schedule({.operation = operation,
                .algorithm = std::string(algorithm),
                .ranks = options.layout.ranks(),
                .channels = options.layout.channels(),
                .root = options.root,
                .rendezvous = extent.rendezvous,
                .chunk_count = channel_count(options) * extent.chunks,
                .entries = channel_count(options) * extent.entries,
                .chunk_cuts = extent.chunk_cuts,
                .lanes = channel_count(options) * rank_count(options) * extent.lanes_of_rank,
                .connections = channel_count(options) * extent.connections,
                .channel_connections = options.are_alike ? extent.connections : 0}),
      ranks_(rank_count(options)) {}

std::optional<Algorithm> parse_algorithm(std::string_view name) {
  const auto* const found = std::ranges::find(kAlgorithms, name, &AlgorithmRow::name);
  return found == kAlgorithms.end() ? std::nullopt : std::optional(*found);
}

std::vector<Algorithm> algorithms_for(Operation operation) {
  std::vector<Algorithm> able;
  std::ranges::copy_if(kAlgorithms, std::back_inserter(able),
                       [&](Algorithm algorithm) { return supports(algorithm, operation); });
  return able;
}

Algorithm default_algorithm(Operation operation) {
  return supports(&kRing, operation) ? &kRing : &kDirect;
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
  return algorithm->build(operation, options);
}

int default_pieces(Algorithm algorithm, Operation operation, const RankLayout& layout, Bytes size) {
  constexpr std::int64_t kPiecesPerStage = 32;
  constexpr std::int64_t kMinPiece = 8 * 1024;
  const std::int64_t stages =
      algorithm->stages == nullptr ? 0 : algorithm->stages(operation, layout);
  const std::int64_t share = size.count() / layout.channels();
  return static_cast<int>(std::clamp<std::int64_t>(
      share / kMinPiece, 1, std::max<std::int64_t>(1, kPiecesPerStage * stages)));
}

}  // namespace trainyard
