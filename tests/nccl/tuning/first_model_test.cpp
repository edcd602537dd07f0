// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/first_model.h"

#include "support/catch.h"

namespace trainyard::nccl {
namespace {

Communicator made(int nodes, int gpus, PathType intra, int channels) {
  Communicator communicator;
  communicator.version = Version::V2_4;
  communicator.nodes = nodes;
  communicator.ranks = nodes * gpus;
  communicator.channels = channels;
  communicator.aligned.ring.type_intra = intra;
  return communicator;
}

// The size at which both lines cross.
double crossing(const Communicator& communicator) {
  const auto ring =
      first_model_cell(communicator, Function::AllReduce, Algorithm::Ring, Protocol::Simple);
  const auto tree =
      first_model_cell(communicator, Function::AllReduce, Algorithm::Tree, Protocol::Simple);
  if (!ring || !tree) {
    return 0.0;
  }
  return (ring->latency - tree->latency) * 1000.0 / (1.0 / tree->bandwidth - 1.0 / ring->bandwidth);
}

TEST_CASE("2.4 takes trees up to where ncclTreeThreshold puts them", "[nccl][tuning]") {
  // 8 nodes with 4 GPUs without NVLink: ring 5000 B/us and 6 * 31 us, tree two thirds of it and
  // 15 * 3 + 4 * 3 us: 10,000 B/us * 129 us.
  REQUIRE(crossing(made(8, 4, PathType::Phb, 2)) == Approx(1.29e6));
  // With NVLink and 12 channels on four nodes: 60,000 and 45,000 B/us, 6 * 31 and 30 + 28 us.
  REQUIRE(crossing(made(4, 8, PathType::Nvl, 12)) == Approx(180000.0 * 128.0));
  // On two nodes a tree has 1.5 times the bandwidth, so that the ring is never better.
  REQUIRE(crossing(made(2, 8, PathType::Nvl, 12)) < 0.0);
  // No tree on one node, none without gain, and none but for AllReduce.
  REQUIRE(crossing(made(1, 8, PathType::Nvl, 12)) == 0.0);
  REQUIRE(crossing(made(2, 1, PathType::Phb, 2)) == 0.0);
  REQUIRE_FALSE(first_model_cell(made(8, 4, PathType::Phb, 2), Function::AllGather, Algorithm::Tree,
                                 Protocol::LL));
}

TEST_CASE("2.4 takes LL up to 64 bytes a thread and chunk, twice on several nodes",
          "[nccl][tuning]") {
  REQUIRE(first_model_ll_threshold(made(1, 8, PathType::Nvl, 12), Function::AllReduce,
                                   Algorithm::Ring) == Bytes(12 * 256 * 8 * 64));
  REQUIRE(first_model_ll_threshold(made(8, 4, PathType::Phb, 2), Function::AllReduce,
                                   Algorithm::Tree) == Bytes(2 * 256 * 64 * 8));
  REQUIRE_FALSE(first_model_cell(made(1, 8, PathType::Nvl, 12), Function::AllReduce,
                                 Algorithm::Ring, Protocol::LL128));
}

}  // namespace
}  // namespace trainyard::nccl
