// SPDX-License-Identifier: Apache-2.0
// Closed form of the two-hop alltoall, all ranks on one idle switch: the exchange inside, then that
// along the rails.
#include "support/catch.h"

#include <numeric>
#include <utility>

#include "support/collective_run.h"

namespace trainyard {
namespace {

RankLayout servers_hop(int nodes, int per_node) {
  std::vector<int> natural(static_cast<std::size_t>(per_node));
  std::iota(natural.begin(), natural.end(), 0);
  return even_layout(nodes, {natural});
}

TEST_CASE("two hops take what each of them takes") {
  for (const auto& [nodes, per_node] : {std::pair{2, 4}, {4, 2}, {3, 3}, {1, 5}, {6, 1}, {1, 1}}) {
    for (const std::int64_t block : {0, 1, 4096, 1'000'003}) {
      const auto hop = [&](std::int64_t messages, std::int64_t blocks) {
        return messages == 0
                   ? SimTime()
                   : transfer_time(Bytes(messages * blocks * block), kIdleBandwidth) + kIdleLatency;
      };
      const SimTime expected = hop(per_node - 1, nodes) + hop(nodes - 1, per_node);
      const auto schedule =
          make_schedule(&kTwoHop, Operation::AllToAll,
                        {.layout = servers_hop(nodes, per_node), .root = RankId(0)});
      for (const Fidelity fidelity : {Fidelity::Analytical, Fidelity::Flow}) {
        INFO(nodes << " x " << per_node << ", blocks of " << block << ", " << to_string(fidelity));
        const CollectiveRun run = run_schedule(idle_switch(nodes * per_node), *schedule,
                                               Bytes(block * nodes * per_node), fidelity);
        REQUIRE_FALSE(run.violation.has_value());
        // The analytical engine does not see that the messages of a hop share a port.
        REQUIRE((fidelity == Fidelity::Flow ? run.finish == expected : run.finish <= expected));
      }
    }
  }
}

TEST_CASE("messages between servers stay on one rail, and there is one for each server") {
  const auto schedule = make_schedule(&kTwoHop, Operation::AllToAll,
                                      {.layout = servers_hop(3, 4), .root = RankId(0)});
  for (std::uint32_t lane = 0; lane < 12; ++lane) {
    int crossing = 0;
    for (std::uint64_t index = 0; index < schedule->step_count(LaneId(lane)); ++index) {
      const Step step = schedule->step(LaneId(lane), index);
      const RankId target = schedule->connection(step.connection).target;
      if (step.kind == StepKind::Send && target.value() / 4 != lane / 4) {
        REQUIRE(target.value() % 4 == lane % 4);
        REQUIRE(step.chunks.count == 4);
        ++crossing;
      }
    }
    REQUIRE(crossing == 2);
  }
}

}  // namespace
}  // namespace trainyard
