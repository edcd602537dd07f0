// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/graph/graph_jobs.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "parallelism/graph/graph_network.h"
#include "support/step_rates.h"
#include "support/step_times.h"

namespace trainyard {
namespace {

using namespace literals;

// One rank of each of two servers, which compute and then reduce.
OperationGraph reducing_pair(SimTime work, Bytes size) {
  OperationGraph graph(2);
  const CommunicatorId pair = graph.add_communicator("pair", {0, 1});
  for (const int rank : {0, 1}) {
    const StreamId stream = graph.add_stream(rank, "compute");
    graph.add_compute(stream, "work", StepPart::Linear, work);
    graph.add_collective(stream, "reduce", StepPart::Data,
                         {.communicator = pair, .operation = Operation::AllReduce, .size = size});
  }
  return graph;
}

struct SharedJobs {
  Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2});
  Simulator simulator;
  SharedNetwork network = SharedNetwork(simulator, cluster, Fidelity::Flow);

  // Both jobs on the same two GPUs.
  std::vector<std::vector<SimTime>> run(const std::vector<OperationGraph>& graphs, int steps) {
    Cluster part = cluster;
    keep_ranks(cluster.gpus, {0, 8}, part);
    std::vector<std::unique_ptr<NetworkTraffic>> traffic;
    std::vector<GraphJob> jobs;
    for (const OperationGraph& graph : graphs) {
      traffic.push_back(std::make_unique<NetworkTraffic>(simulator, part, network));
      jobs.push_back({.name = "job", .graph = graph, .traffic = *traffic.back()});
    }
    return run_together(simulator, jobs, steps);
  }
};

}  // namespace

TEST_CASE("a job that is alone does equal steps", "[graph_jobs]") {
  const auto times = SharedJobs().run({reducing_pair(1_ms, 64_MiB)}, 4);
  REQUIRE(times.size() == 1);
  REQUIRE(times[0].size() == 4);
  REQUIRE(std::all_of(times[0].begin(), times[0].end(),
                      [&](SimTime step) { return step == times[0][0]; }));
}

TEST_CASE("jobs that send at the same time share, jobs that take turns do not", "[graph_jobs]") {
  const SimTime traffic = SharedJobs().run({reducing_pair(0_ps, 64_MiB)}, 1)[0][0];
  const OperationGraph busy = reducing_pair(0_ps, 64_MiB);
  const auto both = SharedJobs().run({busy, reducing_pair(0_ps, 64_MiB)}, 3);
  for (const std::vector<SimTime>& steps : both) {
    REQUIRE(steps.size() >= 3);
    REQUIRE(steps[1] / traffic == Approx(2.0).epsilon(0.05));
  }
  // One computes while the other one sends, and has sent when that computes again: after a first
  // step at which both are at it, nobody waits.
  const SimTime work = traffic * 3;
  const auto turns =
      SharedJobs().run({reducing_pair(work, 64_MiB), reducing_pair(work + traffic * 2, 64_MiB)}, 2);
  REQUIRE(turns[0][0] == work + traffic);
  REQUIRE(turns[1][0] == work + traffic * 3);
}

TEST_CASE("a short job goes on while a long one runs", "[graph_jobs]") {
  const auto times = SharedJobs().run({reducing_pair(10_ms, 1_MiB), reducing_pair(1_ms, 1_MiB)}, 2);
  REQUIRE(times[0].size() == 2);
  REQUIRE(times[1].size() >= 15);
  REQUIRE(times[1].size() <= 20);
}

TEST_CASE("a job that waits for ever is named", "[graph_jobs]") {
  OperationGraph stuck(2);
  stuck.add_receive(stuck.add_stream(1, "compute"), "from nobody", StepPart::Pipeline,
                    {.peer = 0, .size = 1_MiB});
  REQUIRE_THROWS_WITH(SharedJobs().run({stuck}, 1),
                      Catch::Matchers::Contains("job: expected a step that ends, found that "
                                                "rank 1, compute: from nobody waits for"));
}

}  // namespace trainyard
