// SPDX-License-Identifier: Apache-2.0
// Closed forms of the two-level algorithm, all ranks on one idle switch, so that both levels have
// the same links: see hierarchical.cpp. The analytical engine does not see that the messages of an
// exchange inside share a port.
#include "support/catch.h"

#include <bit>
#include <numeric>
#include <utility>

#include "support/collective_run.h"

namespace trainyard {
namespace {

SimTime message_time_hierarchical(std::int64_t size) {
  return transfer_time(Bytes(size), kIdleBandwidth) + kIdleLatency;
}

RankLayout servers(int nodes, int per_node) {
  std::vector<int> natural(static_cast<std::size_t>(per_node));
  std::iota(natural.begin(), natural.end(), 0);
  return even_layout(nodes, {natural});
}

SimTime time_of_hierarchical(Operation operation, const RankLayout& layout, std::int64_t size,
                             Fidelity fidelity) {
  const auto schedule =
      make_schedule(&kHierarchical, operation, {.layout = layout, .root = RankId(0)});
  const CollectiveRun run =
      run_schedule(idle_switch(layout.ranks()), *schedule, Bytes(size), fidelity);
  REQUIRE_FALSE(run.violation.has_value());
  return run.finish;
}

TEST_CASE("two levels take the exchange inside and the rounds between") {
  for (const auto& [nodes, per_node] :
       {std::pair{2, 4}, {4, 2}, {8, 2}, {3, 2}, {5, 3}, {1, 4}, {4, 1}, {6, 1}}) {
    for (const std::int64_t block : {0, 1, 4096, 1'000'003}) {
      const std::int64_t size = block * nodes * per_node;
      // One part to each of the others, all at once.
      const SimTime inside =
          per_node > 1 ? message_time_hierarchical((per_node - 1) * block * nodes) : SimTime();
      SimTime between;
      if (std::has_single_bit(static_cast<unsigned>(nodes))) {
        for (int blocks = 1; blocks < nodes; blocks *= 2) {
          between += message_time_hierarchical(block * blocks);
        }
      } else {
        between = message_time_hierarchical(block) * (nodes - 1);
      }
      for (const Fidelity fidelity : {Fidelity::Analytical, Fidelity::Flow}) {
        INFO(nodes << " x " << per_node << ", blocks of " << block << ", " << to_string(fidelity));
        const RankLayout layout = servers(nodes, per_node);
        const SimTime half = inside + between;
        const auto agrees = [&](Operation operation, SimTime expected) {
          const SimTime time = time_of_hierarchical(operation, layout, size, fidelity);
          return fidelity == Fidelity::Flow ? time == expected : time <= expected;
        };
        REQUIRE(agrees(Operation::AllReduce, half * 2));
        REQUIRE(agrees(Operation::AllGather, half));
        REQUIRE(agrees(Operation::ReduceScatter, half));
      }
    }
  }
}

TEST_CASE("between servers a head carries its part only") {
  const RankLayout layout = servers(4, 4);
  const auto schedule =
      make_schedule(&kHierarchical, Operation::AllReduce, {.layout = layout, .root = RankId(0)});
  const Chunking chunking(schedule->shape(), mib(16));
  std::int64_t across = 0;
  for (std::uint64_t index = 0; index < schedule->step_count(LaneId(5)); ++index) {
    const Step step = schedule->step(LaneId(5), index);
    const ScheduleConnection ends = schedule->connection(step.connection);
    if (step.kind == StepKind::Send && ends.target.value() / 4 != 1) {
      REQUIRE(ends.target.value() % 4 == 1);
      across += chunking.bytes(step.chunks).count();
    }
  }
  REQUIRE(Bytes(across) == mib(6));  // 2 (M-1)/M S/k.
}

}  // namespace
}  // namespace trainyard
