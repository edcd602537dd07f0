// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "collectives/algorithms/algorithms.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace trainyard {
namespace {

TEST_CASE("every algorithm's name is read back as the algorithm, and no other is") {
  for (const Algorithm algorithm : kAlgorithms) {
    REQUIRE(parse_algorithm(to_string(algorithm)) == algorithm);
  }
  for (const char* name : {"", "Ring", "halving_doubling", "rings", "auto"}) {
    REQUIRE_FALSE(parse_algorithm(name).has_value());
  }
}

TEST_CASE("every operation has an algorithm, and every algorithm's schedule carries its name") {
  for (const Operation operation : kOperations) {
    const std::vector<Algorithm> able = algorithms_for(operation);
    REQUIRE_FALSE(able.empty());
    for (const Algorithm algorithm : kAlgorithms) {
      const bool listed = std::ranges::find(able, algorithm) != able.end();
      REQUIRE(listed == supports(algorithm, operation));
    }
    for (const Algorithm algorithm : able) {
      const auto schedule = make_schedule(
          algorithm, operation, {.layout = flat_layout(5, 3), .root = RankId(2), .pieces = 2});
      REQUIRE(schedule->shape().algorithm == to_string(algorithm));
      REQUIRE(schedule->shape().operation == operation);
      REQUIRE(schedule->shape().ranks == 5);
      REQUIRE(schedule->shape().channels == 3);
      REQUIRE(schedule->shape().root == RankId(2));
    }
  }
}

// What is refused before anything is allocated is judged by these two bounds.
TEST_CASE("no schedule has more connections or chunks than its algorithm's row allows") {
  for (const Operation operation : kOperations) {
    for (const Algorithm algorithm : algorithms_for(operation)) {
      for (const int ranks : {1, 2, 5, 8, 12}) {
        for (const int channels : {1, 3}) {
          const RankLayout layout = flat_layout(ranks, channels);
          const auto schedule =
              make_schedule(algorithm, operation, {.layout = layout, .root = RankId(0)});
          const ScheduleShape& shape = schedule->shape();
          INFO(to_string(algorithm) << ' ' << to_string(operation) << ' ' << ranks);
          const std::int64_t places = std::int64_t{ranks} * channels;
          REQUIRE(shape.connections <= places * algorithm->partners(operation, layout));
          REQUIRE(std::max(shape.chunk_count, shape.entries) <=
                  places * algorithm->chunks(operation, layout));
        }
      }
    }
  }
}

TEST_CASE("what each algorithm can do") {
  const auto names = [](Operation operation) {
    std::string text;
    for (const Algorithm algorithm : algorithms_for(operation)) {
      text += (text.empty() ? "" : " ") + std::string(to_string(algorithm));
    }
    return text;
  };
  REQUIRE(
      names(Operation::AllReduce) ==
      "ring tree halving-doubling halving-doubling-far nvls sharp recursive-doubling hierarchical "
      "multi-ring nvls-tree swing");
  REQUIRE(names(Operation::AllGather) ==
          "ring halving-doubling halving-doubling-far nvls recursive-doubling bruck hierarchical "
          "multi-ring pat");
  REQUIRE(names(Operation::ReduceScatter) ==
          "ring halving-doubling halving-doubling-far nvls hierarchical multi-ring pat");
  REQUIRE(names(Operation::Broadcast) == "ring tree nvls");
  REQUIRE(names(Operation::Reduce) == "ring tree nvls");
  REQUIRE(names(Operation::AllToAll) == "pairwise direct bruck two-hop");
  REQUIRE(names(Operation::AllToAllV) == "pairwise direct");
  REQUIRE(names(Operation::SendReceive) == "direct");
  REQUIRE(names(Operation::Scatter) == "direct");
  REQUIRE(names(Operation::Gather) == "direct");
  REQUIRE(names(Operation::Barrier) == "dissemination");
}

TEST_CASE("pieces fill pipelines: 32 for each stage, but none below 8 KiB") {
  const RankLayout layout = flat_layout(5, 2);
  const auto pieces = [&](Algorithm algorithm, Operation operation, Bytes size) {
    return default_pieces(algorithm, operation, layout, size);
  };
  REQUIRE(pieces(&kRing, Operation::AllReduce, gib(1)) == 1);
  REQUIRE(pieces(&kHalvingDoubling, Operation::AllReduce, gib(1)) == 1);
  REQUIRE(pieces(&kDirect, Operation::AllToAll, gib(1)) == 1);
  for (const Algorithm algorithm : kAlgorithms) {
    for (const Operation operation : kOperations) {
      if (supports(algorithm, operation)) {
        const bool gains = algorithm->stages != nullptr && algorithm->stages(operation, layout) > 0;
        REQUIRE((pieces(algorithm, operation, gib(1)) > 1) == gains);
      }
    }
  }
  REQUIRE(pieces(&kRing, Operation::Broadcast, gib(1)) == 32 * 4);
  REQUIRE(pieces(&kRing, Operation::Reduce, kib(8 * 2 * 5)) == 5);
  REQUIRE(pieces(&kRing, Operation::Broadcast, Bytes(0)) == 1);
  REQUIRE(pieces(&kRing, Operation::Broadcast, kib(16) - Bytes(1)) == 1);
  REQUIRE(pieces(&kTree, Operation::AllReduce, gib(1)) == 32 * tree_depth(layout));
  REQUIRE(pieces(&kNvls, Operation::AllReduce, gib(1)) == 32 * 2);
  REQUIRE(pieces(&kNvls, Operation::AllGather, gib(1)) == 32);
  REQUIRE(pieces(&kSharp, Operation::AllReduce, gib(1)) == 32 * 4);
  REQUIRE(pieces(&kNvlsTree, Operation::AllReduce, gib(1)) == 32 * 4);
}

}  // namespace
}  // namespace trainyard
