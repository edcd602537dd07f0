// SPDX-License-Identifier: Apache-2.0
// Expected figures are computed by hand from RCCL's tables and equations
// (docs/models/rccl.md).
#include "nccl/tuning/rccl_tuning.h"

#include <algorithm>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/nccl_timing.h"

namespace trainyard::nccl {
namespace {

TimedJob amd_job(int nodes, const Variables& variables = {}, const std::string& gpu = "MI300X",
                 int gpus = 8) {
  return TimedJob(
      shipped_cluster("mi300x",
                      {.nodes = nodes, .gpus_per_node = gpus, .settings = {"server.gpu=" + gpu}}),
      variables);
}

}  // namespace

TEST_CASE("RCCL has so many channels", "[nccl][rccl]") {
  REQUIRE(amd_job(1).communicator.channels == 56);  // Twice 28 rings.
  REQUIRE(amd_job(2).communicator.channels == 64);  // Rings have as many on several nodes.
  REQUIRE(amd_job(1, {}, "MI355X").communicator.channels == 112);
  REQUIRE(amd_job(1, {{"NCCL_MAX_NCHANNELS", "16"}}).communicator.channels == 16);
  REQUIRE(release_of(amd_job(1).communicator) == "RCCL");
}

TEST_CASE("the cost model of eight MI300X is that of tuning model 5", "[nccl][rccl]") {
  const TimedJob job = amd_job(1);
  const TuningTable& table = job.communicator.tuning;
  // All channels of seven links of 48 GB/s; a ring of eight carries 8/14 of that.
  const TuningCell ring = table.cell(Function::AllReduce, Algorithm::Ring, Protocol::Simple);
  REQUIRE(ring.bandwidth == Approx(336.0 * 8 / 14));
  REQUIRE(ring.latency == Approx(17.0 + 14 * 2.1));
  const TuningCell ll = table.cell(Function::AllReduce, Algorithm::Ring, Protocol::LL);
  REQUIRE(ll.bandwidth == Approx(336.0 * 0.08 * 8 / 14));
  REQUIRE(ll.latency == Approx(12.0 + 14 * 0.8));
  const TuningCell tree = table.cell(Function::AllReduce, Algorithm::Tree, Protocol::LL);
  REQUIRE(tree.bandwidth == Approx(336.0 * 0.06 / 2));
  REQUIRE(tree.latency == Approx(12.0 + 2 * 7 * 0.9));
  // No tree with Simple on one node.
  REQUIRE(table.cell(Function::AllReduce, Algorithm::Tree, Protocol::Simple).bandwidth == 0.0);
  REQUIRE(table.cell(Function::AllReduce, Algorithm::Ring, Protocol::LL128).bandwidth > 0.0);
  REQUIRE(table.max_threads[static_cast<std::size_t>(Algorithm::Ring)] ==
          std::array<int, 3>{256, 256, 256});
}

TEST_CASE("short sums of eight MI300X go by MSCCL's schedules", "[nccl][rccl]") {
  const TimedJob job = amd_job(1);
  const auto plan = [&](Bytes size) { return job.plan(Function::AllReduce, size); };
  REQUIRE(plan(Bytes(512)).algorithm != Algorithm::AllPairs);  // No 256 elements.
  REQUIRE(plan(kib(1)).algorithm == Algorithm::AllPairs);
  REQUIRE(plan(kib(1)).protocol == Protocol::LL);
  REQUIRE(plan(kib(256)).protocol == Protocol::LL);
  REQUIRE(plan(kib(512)).protocol == Protocol::Simple);
  REQUIRE(plan(mib(16)).algorithm == Algorithm::AllPairs);
  REQUIRE(plan(mib(32)).algorithm == Algorithm::Ring);
  REQUIRE(plan(mib(32)).protocol == Protocol::Simple);
  const TimedJob without = amd_job(1, {{"RCCL_MSCCL_ENABLE", "0"}});
  REQUIRE(without.plan(Function::AllReduce, kib(1)).algorithm != Algorithm::AllPairs);
  const TimedJob told = amd_job(1, {{"NCCL_ALGO", "Ring"}});
  REQUIRE(told.plan(Function::AllReduce, kib(1)).algorithm == Algorithm::Ring);
  REQUIRE(amd_job(1, {}, "MI300X", 4).plan(Function::AllReduce, kib(1)).algorithm !=
          Algorithm::AllPairs);
}

TEST_CASE("sizes decide the protocol", "[nccl][rccl]") {
  const TimedJob one = amd_job(1);
  // ReduceScatter up to 352,128 bytes of a rank.
  REQUIRE(one.plan(Function::ReduceScatter, Bytes(8 * 352'128)).protocol == Protocol::LL);
  REQUIRE(one.plan(Function::ReduceScatter, mib(64)).protocol == Protocol::Simple);
  REQUIRE(one.plan(Function::AllGather, mib(4)).algorithm == Algorithm::AllPairs);
  REQUIRE(one.plan(Function::AllGather, mib(8)).algorithm == Algorithm::Ring);
  const TimedJob two = amd_job(2);
  REQUIRE(two.plan(Function::AllReduce, mib(1)).protocol == Protocol::LL);
  REQUIRE(two.plan(Function::AllReduce, mib(8)).protocol == Protocol::LL128);
  REQUIRE(two.plan(Function::AllReduce, mib(16)).protocol == Protocol::Simple);
  REQUIRE(amd_job(2, {{"NCCL_PROTO", "Simple"}}).plan(Function::AllReduce, kib(1)).protocol ==
          Protocol::Simple);
}

TEST_CASE("every second node turns its rings round, so that each hop stays on its rail",
          "[nccl][rccl]") {
  const Communicator& made = amd_job(4).communicator;
  REQUIRE(made.rings.size() == 64);
  for (const RingChannel& ring : made.rings) {
    for (std::size_t i = 0; i < ring.order.size(); ++i) {
      const int from = ring.order[i];
      const int to = ring.order[(i + 1) % ring.order.size()];
      if (from / 8 != to / 8) {
        REQUIRE(from % 8 == to % 8);
      }
    }
  }
}

}  // namespace trainyard::nccl
