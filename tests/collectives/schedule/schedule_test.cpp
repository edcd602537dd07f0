// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "collectives/schedule/schedule.h"

#include <vector>

#include "sim/random.h"
#include "support/collective_run.h"
#include "support/copied_schedule.h"

namespace trainyard {
namespace {

ScheduleShape shape_of(Operation operation, int ranks, std::uint32_t chunks) {
  ScheduleShape shape;
  shape.operation = operation;
  shape.ranks = ranks;
  shape.chunk_count = chunks;
  return shape;
}

TEST_CASE("chunks differ by a byte at most and add up to the size, whatever it is") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "chunking test");
    const auto chunks = static_cast<std::uint32_t>(1 + random.below(1000));
    const auto size = static_cast<std::int64_t>(random.next() >> (2 + random.below(60)));
    const Chunking chunking(shape_of(Operation::AllReduce, 4, chunks), Bytes(size));
    Bytes sum;
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
      const Bytes bytes = chunking.bytes({.first = chunk, .count = 1});
      REQUIRE(bytes.count() >= size / chunks);
      REQUIRE(bytes.count() <= size / chunks + 1);
      sum += bytes;
    }
    REQUIRE(sum == Bytes(size));
    const auto first = static_cast<std::uint32_t>(random.below(chunks));
    REQUIRE(chunking.bytes({.first = 0, .count = first}) +
                chunking.bytes({.first = first, .count = chunks - first}) ==
            Bytes(size));
  }
}

TEST_CASE("cuts between chunks are rounded down") {
  const Chunking chunking(shape_of(Operation::AllReduce, 4, 4), Bytes(10));
  std::vector<std::int64_t> sizes;
  for (std::uint32_t chunk = 0; chunk < 4; ++chunk) {
    sizes.push_back(chunking.bytes({.first = chunk, .count = 1}).count());
  }
  REQUIRE(sizes == std::vector<std::int64_t>{2, 3, 2, 3});  // Cuts at 2, 5 and 7.
}

TEST_CASE(
    "the size of alltoall and sendrecv is that of one rank, of all others that of the whole") {
  for (const Operation operation : kOperations) {
    INFO(to_string(operation));
    const Chunking chunking(shape_of(operation, 8, 8), Bytes(8001));
    if (operation == Operation::Barrier) {
      REQUIRE(chunking.bytes({.first = 0, .count = 8}) == Bytes(0));
      continue;
    }
    const bool per_rank = operation == Operation::AllToAll || operation == Operation::AllToAllV ||
                          operation == Operation::SendReceive;
    REQUIRE(chunking.bytes({.first = 0, .count = 8}) == Bytes(per_rank ? 64'008 : 8001));
  }
}

TEST_CASE("a stored copy has the steps and connections of the original and takes the same time") {
  const TestFabric fabric = idle_switch(6);
  for (const Operation operation : kOperations) {
    for (const Algorithm algorithm : algorithms_for(operation)) {
      INFO(to_string(algorithm) << " " << to_string(operation));
      const auto original = make_flat({.algorithm = algorithm,
                                       .operation = operation,
                                       .ranks = 6,
                                       .channels = 2,
                                       .pieces = 2,
                                       .root = 4});
      CopiedSchedule copy(*original);
      REQUIRE(copy.shape().lanes == original->shape().lanes);
      REQUIRE(copy.lanes().size() == original->shape().lanes);
      REQUIRE(copy.connections().size() == original->shape().connections);
      for (std::uint32_t lane = 0; lane < copy.shape().lanes; ++lane) {
        REQUIRE(copy.lane_rank(LaneId(lane)) == original->lane_rank(LaneId(lane)));
        REQUIRE(copy.step_count(LaneId(lane)) == original->step_count(LaneId(lane)));
        for (std::uint64_t index = 0; index < copy.step_count(LaneId(lane)); ++index) {
          const Step a = copy.step(LaneId(lane), index);
          const Step b = original->step(LaneId(lane), index);
          REQUIRE(a.kind == b.kind);
          REQUIRE(a.connection == b.connection);
          REQUIRE(a.chunks == b.chunks);
        }
      }
      REQUIRE(run_schedule(fabric, copy, Bytes(100'003), Fidelity::Flow).fingerprint ==
              run_schedule(fabric, *original, Bytes(100'003), Fidelity::Flow).fingerprint);
    }
  }
}

}  // namespace
}  // namespace trainyard
