// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/graph_network.h"

#include <array>
#include <vector>

#include "parallelism/cluster_times.h"
#include "parallelism/graph_runner.h"
#include "parallelism/step_graph.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

using namespace literals;

Cluster two_servers() {
  return shipped_cluster("dgx-h100", {.nodes = 2});
}

// Calls of these groups at once, each on a stream of its own.
GraphResult run_groups(const Cluster& cluster, const std::vector<std::vector<int>>& groups,
                       Operation operation, Fidelity fidelity, int times = 1) {
  OperationGraph graph(static_cast<int>(cluster.gpus.size()));
  for (const std::vector<int>& ranks : groups) {
    const CommunicatorId group = graph.add_communicator("group", ranks);
    for (const int rank : ranks) {
      graph.add_collective(
          graph.add_stream(rank, "data"), "call", StepPart::Data,
          {.communicator = group, .operation = operation, .size = 64_MiB, .times = times});
    }
  }
  check(graph, "test");
  Simulator simulator;
  SharedNetwork network(simulator, cluster, fidelity);
  NetworkTraffic traffic(simulator, cluster, network);
  return run_graph(simulator, graph, traffic);
}

}  // namespace

TEST_CASE("a call that is alone takes what the plain runtime says", "[graph_network]") {
  const Cluster cluster = two_servers();
  ClusterTimes times(cluster, {}, Fidelity::Flow);
  const std::array<std::vector<int>, 3> groups{
      std::vector<int>{0, 1, 2, 3}, {0, 8}, {2, 3, 10, 11}};
  for (const Operation operation : {Operation::AllReduce, Operation::AllToAll}) {
    for (const std::vector<int>& group : groups) {
      const SimTime alone = times.collective(operation, group, 64_MiB);
      REQUIRE(run_groups(cluster, {group}, operation, Fidelity::Flow).finish == alone);
    }
  }
  const SimTime once = times.collective(Operation::AllReduce, groups[0], 64_MiB);
  REQUIRE(run_groups(cluster, {groups[0]}, Operation::AllReduce, Fidelity::Flow, 3).finish ==
          once * 3);
}

TEST_CASE("groups on the same links take bandwidth from each other, others do not",
          "[graph_network]") {
  const Cluster cluster = two_servers();
  for (const Fidelity fidelity : {Fidelity::Flow, Fidelity::Packet}) {
    const auto time = [&](const std::vector<std::vector<int>>& groups) {
      return run_groups(cluster, groups, Operation::AllReduce, fidelity).finish;
    };
    const SimTime alone = time({{0, 8}});
    REQUIRE(time({{0, 8}, {1, 9}}) / alone == Approx(1.0).epsilon(0.02));
    REQUIRE(time({{0, 8}, {0, 8}}) / alone == Approx(2.0).epsilon(0.05));
  }
}

TEST_CASE("a step on a shared network is the sum of its parts, and near what groups take alone",
          "[graph_network]") {
  const Cluster cluster = two_servers();
  Model model = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
  model.layers.resize(2);
  const ParallelPlan plan{
      .tensor = 2, .pipeline = 2, .data = 4, .zero_stage = 1, .global_batch = 8, .sequence = 1024};
  const ComputeRates rates = shipped_compute("H100-SXM", "nemo");
  const SoftwareProfile software = shipped_software("nemo");
  ClusterTimes times(cluster, {}, Fidelity::Flow);
  const StepJob job{.model = model,
                    .plan = plan,
                    .rates = rates,
                    .software = software,
                    .overlap = {.pipeline = true},
                    .server_of_rank = times.servers()};
  const StepGraphRun alone = run_step_graph(job, times, Folding::Unfolded);
  Simulator simulator;
  SharedNetwork network(simulator, cluster, Fidelity::Flow);
  NetworkTraffic traffic(simulator, cluster, network);
  const StepGraphRun shared = run_step_graph(job, simulator, traffic, Folding::Unfolded);
  for (const StepParts& parts : shared.ranks) {
    REQUIRE(parts.total() == shared.run.finish);
  }
  REQUIRE(shared.run.finish / alone.run.finish == Approx(1.0).epsilon(0.05));
}

}  // namespace trainyard
