// SPDX-License-Identifier: Apache-2.0
// How many messages Gloo's algorithms send. mpi_schedule_test.cpp proves them.
#include "support/catch.h"

#include "collectives/mpi/gloo_messages.h"

#include "collectives/mpi/mpi_schedule.h"
#include "support/mpi.h"

namespace trainyard {
namespace {

std::uint64_t sends_of(Operation operation, std::string_view name, int ranks, Bytes size) {
  const MpiCall call{
      .library = MpiLibrary::Gloo, .operation = operation, .ranks = ranks, .size = size};
  const auto schedule = mpi_schedule(name, call, shipped_mpi_rules("gloo"));
  std::uint64_t sends = 0;
  for (std::uint64_t index = 0; index < schedule->step_count(LaneId(1)); ++index) {
    sends += schedule->step(LaneId(1), index).kind == StepKind::Send ? 1 : 0;
  }
  return sends;
}

}  // namespace

TEST_CASE("segments of Gloo are two for each rank, or more of at most 1 MiB",
          "[collectives][mpi]") {
  const auto segments = [](Bytes size) { return gloo_segments({.ranks = 4, .size = size}); };
  REQUIRE(segments(Bytes(4)) == 8);
  REQUIRE(segments(mib(8)) == 8);
  REQUIRE(segments(mib(8) + Bytes(1)) == 12);
  REQUIRE(segments(mib(100)) == 100);
  REQUIRE(segments(mib(101)) == 104);
}

TEST_CASE("a rank of Gloo sends every segment but its own twice round the ring",
          "[collectives][mpi]") {
  REQUIRE(sends_of(Operation::AllReduce, "ring", 4, mib(1)) == 12);
  REQUIRE(sends_of(Operation::AllReduce, "ring", 4, mib(100)) == 150);
  REQUIRE(sends_of(Operation::AllReduce, "ring_chunked", 4, mib(100)) == 12);
  REQUIRE(sends_of(Operation::AllGather, "ring", 4, mib(1)) == 6);
  // The extra rounds of gloo::reduce: 100 - 2 segments and its chunk, not 75 and its chunk.
  REQUIRE(sends_of(Operation::Reduce, "ring", 4, mib(100)) == 99);
}

TEST_CASE("bcube halves as long as it can, and then exchanges with all that are left",
          "[collectives][mpi]") {
  REQUIRE(sends_of(Operation::AllReduce, "bcube", 8, mib(1)) == 6);
  REQUIRE(sends_of(Operation::AllReduce, "bcube", 12, mib(1)) == 8);
  REQUIRE(sends_of(Operation::AllReduce, "bcube", 7, mib(1)) == 12);
}

}  // namespace trainyard
