// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/graph/graph_network.h"
#include "parallelism/model/pipeline_schedule.h"

#include <array>
#include <string>
#include <vector>

#include "network/engines/make_network.h"
#include "parallelism/graph/graph_runner.h"
#include "parallelism/lowering/step_graph.h"
#include "parallelism/model/rank_groups.h"
#include "parallelism/traffic/cluster_times.h"
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

TEST_CASE("a step on an oversubscribed fabric is what it is on the shared network",
          "[graph_network]") {
  const Cluster cluster = shipped_cluster(
      "hgx-h100-clos",
      {.nodes = 4, .settings = {"fabric.nodes_per_leaf=2", "fabric.oversubscription=4"}});
  Model model = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
  model.layers.resize(2);
  const ComputeRates rates = shipped_compute("H100-SXM", "nemo");
  const SoftwareProfile software = shipped_software("nemo");
  for (const int pipeline : {1, 2}) {
    const ParallelPlan plan{.tensor = 4,
                            .pipeline = pipeline,
                            .data = 8 / pipeline,
                            .zero_stage = 1,
                            .global_batch = 16,
                            .sequence = 1024};
    ClusterTimes times(cluster, {}, Fidelity::Flow);
    const StepJob job{.model = model,
                      .plan = plan,
                      .rates = rates,
                      .software = software,
                      .overlap = {},
                      .server_of_rank = times.servers()};
    const SimTime alone = run_step_graph(job, times, Folding::Folded).run.finish;
    times.use_plan(plan);
    const SimTime beside = run_step_graph(job, times, Folding::Folded).run.finish;
    Simulator simulator;
    SharedNetwork network(simulator, cluster, Fidelity::Flow);
    NetworkTraffic traffic(simulator, cluster, network);
    const SimTime shared = run_step_graph(job, simulator, traffic, Folding::Unfolded).run.finish;
    INFO("pipeline " << pipeline << ": alone " << alone.microseconds() << " us, beside "
                     << beside.microseconds() << " us, shared " << shared.microseconds() << " us");
    // Stages reduce their gradients one after the other, which is seen on the network alone.
    REQUIRE(beside / shared == Approx(1.0).epsilon(pipeline == 1 ? 0.001 : 0.03));
    REQUIRE(beside > alone);
  }
}

// All groups at once on the flow engine against one of them with what max-min leaves it.
TEST_CASE("groups of a plan take as long as together on one network", "[graph_network]") {
  for (const char* const routing : {"static", "ecmp", "spray"}) {
    for (const int oversubscription : {1, 2, 4}) {
      const Cluster cluster = shipped_cluster(
          "hgx-h100-clos",
          {.nodes = 4,
           .settings = {"fabric.nodes_per_leaf=2", std::string("fabric.routing=") + routing,
                        "fabric.oversubscription=" + std::to_string(oversubscription)}});
      for (const int tensor : {1, 4, 8}) {
        const ParallelPlan plan{.tensor = tensor, .data = 32 / tensor};
        ClusterTimes times(cluster, {}, Fidelity::Flow);
        const std::vector<int> first = group_of(plan, RankGroupKind::Gradient, 0);
        const SimTime alone = times.collective(Operation::AllReduce, first, 64_MiB);
        times.use_plan(plan);
        std::vector<std::vector<int>> groups;
        for (int rank = 0; rank < tensor; ++rank) {
          groups.push_back(group_of(plan, RankGroupKind::Gradient, rank));
        }
        const SimTime shared = times.collective(Operation::AllReduce, first, 64_MiB);
        const SimTime together =
            run_groups(cluster, groups, Operation::AllReduce, Fidelity::Flow).finish;
        INFO(routing << " " << oversubscription << " tensor " << tensor << ": alone "
                     << alone.microseconds() << " us, shared " << shared.microseconds()
                     << " us, together " << together.microseconds() << " us");
        REQUIRE(shared / together == Approx(1.0).epsilon(1e-6));
      }
    }
  }
}

// Reductions beside transfers between stages and tokens on their way to experts, on the same NICs
// and oversubscribed links, where groups of one kind share in both. On the shared network traffic
// is not slower overlapped with computation: rates without that, here.
TEST_CASE("what kinds of traffic take from each other is little of a step", "[graph_network]") {
  Model dense = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
  Model experts = load_model(kConfigsFolder / "workloads/models/mixtral-8x7b.yaml");
  dense.layers.resize(8);
  experts.layers.resize(8);
  ComputeRates rates = shipped_compute("H100-SXM", "nemo");
  rates.overlapped_tensor = 0.0;
  rates.overlapped_data = 0.0;
  const SoftwareProfile software = shipped_software("nemo");
  const ParallelPlan stages{.tensor = 2,
                            .pipeline = 4,
                            .schedule = &kInterleaved,
                            .chunks = 2,
                            .data = 4,
                            .zero_stage = 1,
                            .global_batch = 64,
                            .sequence = 8192};
  const ParallelPlan spread{.pipeline = 2,
                            .data = 16,
                            .expert = 16,
                            .zero_stage = 1,
                            .global_batch = 128,
                            .sequence = 4096};
  for (const char* const oversubscription : {"1", "4"}) {
    const Cluster cluster =
        shipped_cluster("hgx-h100-clos",
                        {.nodes = 4,
                         .settings = {"fabric.nodes_per_leaf=2", "fabric.routing=spray",
                                      std::string("fabric.oversubscription=") + oversubscription}});
    for (const bool has_experts : {false, true}) {
      const ParallelPlan& plan = has_experts ? spread : stages;
      ClusterTimes times(cluster, {}, Fidelity::Flow);
      times.use_plan(plan);
      const StepJob job{.model = has_experts ? experts : dense,
                        .plan = plan,
                        .rates = rates,
                        .software = software,
                        .overlap = {.data = true, .pipeline = true, .expert = has_experts},
                        .server_of_rank = times.servers()};
      const SimTime by_kind = run_step_graph(job, times, Folding::Folded).run.finish;
      Simulator simulator;
      SharedNetwork network(simulator, cluster, Fidelity::Flow);
      NetworkTraffic traffic(simulator, cluster, network);
      const SimTime all = run_step_graph(job, simulator, traffic, Folding::Unfolded).run.finish;
      INFO((has_experts ? "experts" : "stages")
           << " at " << oversubscription << ":1: " << by_kind.microseconds() << " us by kind, "
           << all.microseconds() << " us all together");
      REQUIRE(all / by_kind == Approx(1.0).epsilon(0.03));
    }
  }
}

TEST_CASE("calls run as packets by what they are for, messages as those of pipelines",
          "[graph_network]") {
  const Cluster cluster = two_servers();
  OperationGraph graph(static_cast<int>(cluster.gpus.size()));
  const CommunicatorId tensor = graph.add_communicator("tensor 0", {0, 1});
  const CommunicatorId data = graph.add_communicator("gradient 0", {0, 8});
  for (const CommunicatorId group : {tensor, data}) {
    for (const int rank : {0, group == tensor ? 1 : 8}) {
      graph.add_collective(
          graph.add_stream(rank, group == tensor ? "tensor" : "data"), "call", StepPart::Data,
          {.communicator = group, .operation = Operation::AllReduce, .size = 1_MiB});
    }
  }
  graph.add_send(graph.add_stream(2, "send"), "activations", StepPart::Pipeline,
                 {.peer = 10, .size = 3_MiB});
  graph.add_receive(graph.add_stream(10, "receive"), "activations", StepPart::Pipeline,
                    {.peer = 2, .size = 3_MiB});
  check(graph, "test");
  const auto packets_of = [&](std::string_view purpose) {
    Simulator simulator;
    const NetworkExtras extras{.mixed = [&](const Topology&) {
      return MixedOptions{.is_chosen = [&](const NewConnection& connection) {
        return connection.purpose == purpose;
      }};
    }};
    SharedNetwork network(simulator, cluster, Fidelity::Packet, roce_options(), extras);
    NetworkTraffic traffic(simulator, cluster, network);
    (void)run_graph(simulator, graph, traffic);
    return extra_results(*network.engine).mixed->packet_bytes;
  };
  REQUIRE(packets_of("tensor") == 2_MiB);  // 2 (n - 1) / n of it for each of two ranks.
  REQUIRE(packets_of("data") == 2_MiB);
  REQUIRE(packets_of("pipeline") == 3_MiB);
  REQUIRE(packets_of("expert") == 0_B);
}

}  // namespace trainyard
