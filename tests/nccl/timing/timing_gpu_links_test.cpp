// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/timing/timing_gpu_links.h"

#include <cstddef>
#include <string>
#include <vector>

#include "support/nccl_timing.h"

namespace trainyard::nccl {
namespace {

struct LinkedJob {
  LinkedJob(const std::string& cluster, int nodes, const Variables& variables)
      : job(shipped_cluster(cluster, {.nodes = nodes}), variables),
        routing(job.cluster.topology, job.cluster.routing),
        ways(routing) {}

  [[nodiscard]] CommunicatorPlace place() {
    return {.cluster = job.cluster,
            .communicator = job.communicator,
            .profile = default_profile(),
            .environment = job.environment,
            .routing = routing};
  }

  TimedJob job;
  Routing routing;
  ConnectionLoads ways;
};

// Weights on links that leave GPUs towards others, and on those that lead to them.
struct Between {
  double there = 0.0;
  double back = 0.0;
};

Between between_gpus(const Cluster& cluster, const Load& load) {
  Between sum;
  for (const LinkWeight& one : load) {
    const Link& link = cluster.topology.link(one.link);
    if (link.spec.kind == LinkKind::NvLink) {
      const bool leaves = cluster.topology.node(link.source).kind == NodeKind::Gpu;
      (leaves ? sum.there : sum.back) += one.weight;
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("a channel of a ring has each connection on the links of both its GPUs",
          "[nccl][timing]") {
  LinkedJob linked("dgx-h100", 1, forced("Ring", "Simple"));
  const CallPlan plan = linked.job.plan(Function::AllReduce, mib(64));
  const std::vector<Load> loads = loads_with_gpu_links(linked.place(), plan, linked.ways);
  REQUIRE(loads.size() == linked.job.communicator.rings.size());
  for (const Load& load : loads) {
    const Between sum = between_gpus(linked.job.cluster, load);
    REQUIRE(sum.there == Approx(8.0));
    REQUIRE(sum.back == Approx(8.0));
  }
  // Timer::loads() has none of them, and else the same.
  for (const Load& load : linked.job.timer().loads(plan, linked.ways)) {
    REQUIRE(load.empty());
  }
}

// The port of a GPU of n carries S + S/n each way for all_reduce, S there and S/n back for
// reduce_scatter (collectives/algorithms/nvls.cpp).
TEST_CASE("NVLS loads the ports of an NVSwitch as its instructions do", "[nccl][timing]") {
  LinkedJob linked("dgx-h100", 1, forced("NVLS", "Simple"));
  const auto ratio = [&](Function function) {
    const CallPlan plan = linked.job.plan(function, mib(64));
    REQUIRE(plan.algorithm == Algorithm::Nvls);
    const std::vector<Load> loads = loads_with_gpu_links(linked.place(), plan, linked.ways);
    REQUIRE(loads.size() == 1);
    const Between sum = between_gpus(linked.job.cluster, loads.front());
    return sum.there / sum.back;
  };
  REQUIRE(ratio(Function::AllReduce) == Approx(1.0));
  REQUIRE(ratio(Function::ReduceScatter) == Approx(8.0));
  REQUIRE(ratio(Function::AllGather) == Approx(1.0 / 8.0));
}

TEST_CASE("an exchange has each pair on the links of both its GPUs", "[nccl][timing]") {
  LinkedJob linked("dgx-h100", 1, {});
  const std::vector<Load> loads =
      loads_with_gpu_links(linked.place(), Operation::AllToAll, linked.ways);
  REQUIRE(loads.size() == 1);
  const Between sum = between_gpus(linked.job.cluster, loads.front());
  REQUIRE(sum.there == Approx(8.0 * 7.0));
  REQUIRE(sum.back == Approx(8.0 * 7.0));
}

}  // namespace trainyard::nccl
