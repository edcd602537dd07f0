// SPDX-License-Identifier: Apache-2.0
// What other ranks have read and what a rank has written is told by hand for two ranks.
#include "support/catch.h"

#include "collectives/mpi/mpi_caches.h"

#include "collectives/mpi/mpi_schedule.h"
#include "support/mpi.h"

namespace trainyard {
namespace {

struct Call {
  explicit Call(Operation operation, std::string_view name)
      : schedule(mpi_schedule(name, {.operation = operation, .ranks = 2, .size = kib(64)},
                              shipped_mpi_rules())),
        caches(*schedule, kib(64), [](const Step&) { return true; }) {}
  std::unique_ptr<Schedule> schedule;
  MpiCaches caches;
};

}  // namespace

TEST_CASE("a call begins with what others had read at the end of the one before",
          "[collectives][mpi]") {
  // Rank 0 sends chunk 0, gets the sum of chunk 1, sends it, and gets chunk 0.
  Call ring(Operation::AllReduce, "ring");
  REQUIRE(ring.caches.copy(0, {0, 2}) == kib(32));  // Chunk 1.
  REQUIRE(ring.caches.copy(0, {0, 2}) == Bytes());
  // It sends and adds up all of its data.
  Call doubling(Operation::AllReduce, "recursive_doubling");
  REQUIRE(doubling.caches.copy(0, {0, 2}) == Bytes());
  Call halving(Operation::ReduceScatter, "recursive_halving");
  REQUIRE(halving.caches.copy(1, {0, 2}) == kib(32));
}

TEST_CASE("what a rank sends is written if the rank has written it in the same call",
          "[collectives][mpi]") {
  Call ring(Operation::AllReduce, "ring");
  REQUIRE(ring.caches.read(0, {0, 1}) == Bytes());
  REQUIRE(ring.caches.write(0, {0, 1}) == kib(32));
  REQUIRE(ring.caches.read(0, {0, 1}) == kib(32));
  // Nobody reads what only rank 1 gets.
  Call broadcast(Operation::Broadcast, "chain");
  REQUIRE(broadcast.caches.read(0, {0, 1}) == Bytes());
  REQUIRE(broadcast.caches.write(1, {0, 1}) == Bytes());
}

TEST_CASE("nothing is read by others where no message is read in place", "[collectives][mpi]") {
  const auto schedule = mpi_schedule("ring", {.ranks = 4, .size = kib(64)}, shipped_mpi_rules());
  MpiCaches caches(*schedule, kib(64), [](const Step&) { return false; });
  REQUIRE(caches.copy(2, {0, 4}) == Bytes());
}

}  // namespace trainyard
