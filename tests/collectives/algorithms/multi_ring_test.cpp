// SPDX-License-Identifier: Apache-2.0
// Closed form of rings along the dimensions of a grid on an idle switch, and proofs for grids of
// several dimensions.
#include "support/catch.h"

#include <functional>
#include <numeric>
#include <vector>

#include "support/collective_run.h"
#include "support/proof.h"

namespace trainyard {
namespace {

ScheduleOptions grid(const std::vector<int>& dimensions, int channels, bool rotate) {
  const int ranks = std::accumulate(dimensions.begin(), dimensions.end(), 1, std::multiplies<>());
  return {.layout = flat_layout(ranks, channels),
          .root = RankId(0),
          .dimensions = dimensions,
          .rotate_dimensions = rotate};
}

TEST_CASE("every dimension takes its ring on what is left") {
  const std::vector<std::vector<int>> grids{{4, 2}, {2, 4}, {3, 5}, {2, 3, 2}, {7}, {2, 2, 2, 2}};
  for (const std::vector<int>& dimensions : grids) {
    for (const std::int64_t block : {0, 1, 4096, 1'000'003}) {
      std::int64_t blocks = std::accumulate(dimensions.begin(), dimensions.end(), std::int64_t{1},
                                            std::multiplies<>());
      const Bytes size(block * blocks);
      SimTime half;
      for (const int length : dimensions) {
        blocks /= length;
        half +=
            (transfer_time(Bytes(block * blocks), kIdleBandwidth) + kIdleLatency) * (length - 1);
      }
      for (const Operation operation :
           {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter}) {
        const auto schedule = make_schedule(&kMultiRing, operation, grid(dimensions, 1, false));
        for (const Fidelity fidelity : {Fidelity::Analytical, Fidelity::Flow}) {
          INFO(dimensions.size() << " dimensions, blocks of " << block << ", "
                                 << to_string(operation) << ", " << to_string(fidelity));
          const CollectiveRun run =
              run_schedule(idle_switch(schedule->shape().ranks), *schedule, size, fidelity);
          REQUIRE_FALSE(run.violation.has_value());
          REQUIRE(run.finish == half * (operation == Operation::AllReduce ? 2 : 1));
        }
      }
    }
  }
}

TEST_CASE("grids of any dimensions are proved, in both directions and every order") {
  for (const std::vector<int>& dimensions :
       {std::vector<int>{4, 4}, {3, 5}, {2, 3, 4}, {2, 2, 2, 2}, {1, 6}, {5, 1, 3}, {3, 3, 3}}) {
    for (const Operation operation :
         {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter}) {
      const int ways = 2 * static_cast<int>(dimensions.size());
      REQUIRE(verify(*make_schedule(&kMultiRing, operation, grid(dimensions, ways, true)))
                  .value_or("proved") == "proved");
    }
  }
}

TEST_CASE("rotated channels use every link of a torus switch equally, both ways") {
  const auto schedule = make_schedule(&kMultiRing, Operation::AllReduce, grid({4, 4}, 4, true));
  // Rank 5 is at (1, 1): its neighbours are 6, 4, 9 and 1.
  std::vector<std::int64_t> bytes(16, 0);
  const Chunking chunking(schedule->shape(), mib(64));
  for (std::uint32_t channel = 0; channel < 4; ++channel) {
    const LaneId lane(channel * 16 + 5);
    for (std::uint64_t index = 0; index < schedule->step_count(lane); ++index) {
      const Step step = schedule->step(lane, index);
      if (step.kind == StepKind::Send) {
        bytes[schedule->connection(step.connection).target.value()] +=
            chunking.bytes(step.chunks).count();
      }
    }
  }
  for (const std::size_t neighbour :
       {std::size_t{6}, std::size_t{4}, std::size_t{9}, std::size_t{1}}) {
    REQUIRE(Bytes(bytes[neighbour]) == mib(30));  // 2 (N-1)/N S over four links.
    bytes[neighbour] = 0;
  }
  REQUIRE(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}) == 0);
}

}  // namespace
}  // namespace trainyard
