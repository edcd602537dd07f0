// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/graph/graph_jitter.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "support/step_times.h"

namespace trainyard {
namespace {

using namespace literals;

// So many ranks, each of which computes so often, and then all meet.
OperationGraph meeting_ranks(int ranks, int operations) {
  OperationGraph graph(ranks);
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  const CommunicatorId everyone = graph.add_communicator("all", all);
  for (int rank = 0; rank < ranks; ++rank) {
    const StreamId stream = graph.add_stream(rank, "compute");
    for (int index = 0; index < operations; ++index) {
      graph.add_compute(stream, "work", StepPart::Linear, 100_us);
    }
    graph.add_collective(stream, "end", StepPart::Data,
                         {.communicator = everyone, .operation = Operation::Barrier});
  }
  return graph;
}

SimTime time_of(const OperationGraph& graph, const ComputeJitter& jitter) {
  Simulator simulator;
  SteadyGroupTimes times(1e9);
  TimedTraffic traffic(times);
  return run_graph(simulator, graph, traffic, with_jitter({}, jitter, graph)).finish;
}

}  // namespace

TEST_CASE("jitter has the mean that it is given, and only ever makes longer", "[graph_jitter]") {
  const OperationGraph graph = meeting_ranks(40, 100);
  const GraphRunOptions options =
      with_jitter({}, {.rank_ppm = 50'000, .operation_ppm = 20'000, .seed = 7}, graph);
  const auto mean_above = [](const std::vector<std::int64_t>& all) {
    REQUIRE(*std::min_element(all.begin(), all.end()) >= 1'000'000);
    const auto changed =
        std::count_if(all.begin(), all.end(), [](std::int64_t ppm) { return ppm != 1'000'000; });
    const auto sum = std::accumulate(all.begin(), all.end(), std::int64_t{0});
    return static_cast<double>(sum - static_cast<std::int64_t>(all.size()) * 1'000'000) /
           static_cast<double>(changed);
  };
  // Means of n exponential draws spread by 1 / sqrt(n): three times that.
  REQUIRE(mean_above(options.operation_ppm) == Approx(20'000).epsilon(3.0 / 63.0));
  REQUIRE(mean_above(options.compute_ppm) == Approx(50'000).epsilon(3.0 / 6.3));
}

TEST_CASE("slow ranks and long operations cost what the slowest of them do", "[graph_jitter]") {
  const OperationGraph graph = meeting_ranks(8, 50);
  REQUIRE(time_of(graph, {}) == 5_ms);
  const ComputeJitter of_ranks{.rank_ppm = 50'000, .seed = 3};
  const std::vector<std::int64_t> factors = with_jitter({}, of_ranks, graph).compute_ppm;
  const std::int64_t slowest = *std::max_element(factors.begin(), factors.end());
  REQUIRE(time_of(graph, of_ranks) == SimTime((5_ms).picoseconds() / 1'000'000 * slowest));
  // Single operations average out within a rank, ranks do not: of equal shares ranks cost more.
  REQUIRE(time_of(graph, {.operation_ppm = 50'000, .seed = 3}) < time_of(graph, of_ranks));
}

TEST_CASE("jitter depends on its seed and on the rank, not on how many there are",
          "[graph_jitter]") {
  const ComputeJitter jitter{.rank_ppm = 50'000, .operation_ppm = 20'000, .seed = 1};
  const GraphRunOptions few = with_jitter({}, jitter, meeting_ranks(4, 10));
  const GraphRunOptions many = with_jitter({}, jitter, meeting_ranks(8, 10));
  REQUIRE(std::equal(few.compute_ppm.begin(), few.compute_ppm.end(), many.compute_ppm.begin()));
  REQUIRE(
      std::equal(few.operation_ppm.begin(), few.operation_ppm.end(), many.operation_ppm.begin()));
  ComputeJitter other = jitter;
  other.seed = 2;
  REQUIRE(with_jitter({}, other, meeting_ranks(4, 10)).compute_ppm != few.compute_ppm);
}

TEST_CASE("jitter comes on top of a slow rank", "[graph_jitter]") {
  const OperationGraph graph = meeting_ranks(2, 1);
  const GraphRunOptions slow{.compute_ppm = {2'000'000, 1'000'000}};
  const ComputeJitter jitter{.rank_ppm = 50'000};
  const auto plain = with_jitter({}, jitter, graph).compute_ppm;
  const auto both = with_jitter(slow, jitter, graph).compute_ppm;
  REQUIRE(both[0] == 2 * plain[0]);
  REQUIRE(both[1] == plain[1]);
}

}  // namespace trainyard
