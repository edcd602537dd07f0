// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <cstddef>
#include <limits>
#include <vector>

#include "support/nccl_timing.h"

namespace trainyard::nccl {
namespace {

// How much of the load lies on links that NICs send into the fabric by.
double sent_by_nics(const Cluster& cluster, const std::vector<Load>& loads) {
  double sum = 0.0;
  for (const Load& load : loads) {
    for (const LinkWeight& one : load) {
      const Link& link = cluster.topology.link(one.link);
      const bool leaves = cluster.topology.node(link.source).kind == NodeKind::Nic &&
                          !cluster.topology.node(link.target).server;
      sum += leaves ? one.weight : 0.0;
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("a ring loads the NICs of every node once a channel, a tree both ways of each edge",
          "[nccl][timing]") {
  const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 4}), forced("Ring", "Simple"));
  const double rate = default_profile().networks.at("rdma").rate;
  Timer timer = job.timer();
  Routing routing(job.cluster.topology, job.cluster.routing);
  ConnectionLoads ways(routing);
  const CallPlan plan = job.plan(Function::AllReduce, mib(256));
  const std::vector<Load> ring = timer.loads(plan, ways);
  REQUIRE(ring.size() == job.communicator.rings.size());
  const auto channels = static_cast<double>(ring.size());
  REQUIRE(sent_by_nics(job.cluster, ring) == Approx(4.0 * channels / rate));
  CallPlan of_tree = plan;
  of_tree.algorithm = Algorithm::Tree;
  // Three edges join four nodes.
  const std::vector<Load> tree = timer.loads(of_tree, ways);
  REQUIRE(sent_by_nics(job.cluster, tree) == Approx(6.0 * static_cast<double>(tree.size()) / rate));
}

TEST_CASE("an exchange loads the NICs with what goes to other nodes", "[nccl][timing]") {
  const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 2}));
  Timer timer = job.timer();
  Routing routing(job.cluster.topology, job.cluster.routing);
  ConnectionLoads ways(routing);
  const double rate = default_profile().networks.at("rdma").rate;
  const std::vector<Load> loads = timer.loads(Operation::AllToAll, ways);
  REQUIRE(loads.size() == 1);
  REQUIRE(sent_by_nics(job.cluster, loads) == Approx(16.0 * 8.0 / rate));
  const TimedJob server(shipped_cluster("dgx-h100", {.nodes = 1}));
  Routing inside(server.cluster.topology, server.cluster.routing);
  ConnectionLoads ways_inside(inside);
  REQUIRE(server.timer().loads(Operation::AllToAll, ways_inside).front().empty());
}

TEST_CASE("limits slow a call down by as much, and none by nothing", "[nccl][timing]") {
  for (const char* const algorithm : {"Ring", "Tree"}) {
    INFO(algorithm);
    const TimedJob job(shipped_cluster("h100-1gpu-400g", {.nodes = 4}),
                       forced(algorithm, "Simple", 2));
    Timer timer = job.timer();
    Routing routing(job.cluster.topology, job.cluster.routing);
    ConnectionLoads ways(routing);
    const CallPlan plan = job.plan(Function::AllReduce, mib(512));
    const SimTime alone = timer.collective(plan).time;
    const std::size_t channels = timer.loads(plan, ways).size();
    constexpr double kFree = std::numeric_limits<double>::infinity();
    timer.limit({.channels = std::vector<double>(channels, kFree)});
    REQUIRE(timer.collective(plan).time == alone);
    // A quarter of the NIC in all.
    timer.limit({.channels = std::vector<double>(channels, 100e9 / static_cast<double>(channels))});
    const double factor = timer.collective(plan).time / alone;
    // The NIC of a node in the middle of a tree sends to three others in each channel.
    REQUIRE(factor > (plan.algorithm == Algorithm::Ring ? 1.8 : 1.2));
    timer.limit({.channels = std::vector<double>(channels, 50e9 / static_cast<double>(channels))});
    REQUIRE(timer.collective(plan).time / alone == Approx(2.0 * factor).epsilon(0.05));
  }
  const TimedJob job(shipped_cluster("h100-1gpu-400g", {.nodes = 4}));
  Timer timer = job.timer();
  const SimTime alone = timer.point_to_point(Operation::AllToAll, mib(512)).time;
  timer.limit({.share = 0.25});
  REQUIRE(timer.point_to_point(Operation::AllToAll, mib(512)).time / alone > 3.0);
}

}  // namespace trainyard::nccl
