// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/first_model.h"

#include <bit>
#include <cstdint>

namespace trainyard::nccl {
namespace {

struct Line {
  double latency;    // us
  double bandwidth;  // GB/s
};

bool has_nvlink(const Communicator& communicator) {
  const PathType type = communicator.aligned.ring.type_intra;
  return type == PathType::Nvl || type == PathType::Nvb;
}

Line ring_line(const Communicator& communicator) {
  constexpr double kHop = 6.0;
  constexpr double kChannel = 5.0;
  return {.latency = kHop * (communicator.ranks - 1),
          .bandwidth = has_nvlink(communicator) ? kChannel * communicator.channels : kChannel};
}

Line tree_line(const Communicator& communicator) {
  constexpr double kHopInside = 4.0;
  constexpr double kHopBetween = 15.0;
  const int nodes = communicator.nodes;
  const int levels = static_cast<int>(std::bit_width(static_cast<unsigned>(nodes))) - 1;
  const int inside = communicator.ranks / nodes - 1;
  const double share = !has_nvlink(communicator) ? 2.0 / 3.0 : nodes == 2 ? 1.5 : 0.75;
  return {.latency = kHopBetween * levels + kHopInside * inside,
          .bandwidth = share * ring_line(communicator).bandwidth};
}

}  // namespace

std::optional<TuningCell> first_model_cell(const Communicator& communicator, Function function,
                                           Algorithm algorithm, Protocol protocol) {
  if (protocol == Protocol::LL128 ||
      (algorithm != Algorithm::Ring && algorithm != Algorithm::Tree)) {
    return std::nullopt;
  }
  const Line ring = ring_line(communicator);
  if (algorithm == Algorithm::Ring) {
    return TuningCell{.latency = ring.latency, .bandwidth = ring.bandwidth};
  }
  const Line tree = tree_line(communicator);
  if (function != Function::AllReduce || communicator.nodes < 2 || ring.latency <= tree.latency) {
    return std::nullopt;
  }
  return TuningCell{.latency = tree.latency, .bandwidth = tree.bandwidth};
}

Bytes first_model_ll_threshold(const Communicator& communicator, Function function,
                               Algorithm algorithm) {
  const std::int64_t chunks =
      algorithm == Algorithm::Ring && !is_rooted(function) ? communicator.ranks : 1;
  constexpr std::int64_t kBytesOfThread = 64;
  const std::int64_t tree = algorithm == Algorithm::Tree ? 4 : 1;
  const std::int64_t several = communicator.nodes > 1 ? 2 : 1;
  return Bytes(communicator.channels * kFirstModelThreads * chunks * kBytesOfThread * tree *
               several);
}

bool first_model_takes_simple(const Communicator& communicator, Function function,
                              Algorithm algorithm, Protocol protocol, Bytes bytes) {
  return communicator.version == Version::V2_4 && protocol == Protocol::LL &&
         communicator.tuning.cell(function, algorithm, Protocol::Simple).bandwidth > 0.0 &&
         bytes > first_model_ll_threshold(communicator, function, algorithm);
}

}  // namespace trainyard::nccl
