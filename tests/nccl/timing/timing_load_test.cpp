// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <cstddef>
#include <limits>
#include <map>
#include <string>
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

// By the NIC that sends into the fabric, and the leaf: bytes.
std::map<std::string, std::map<std::string, double>> sent_by_nics_traffic(const Cluster& cluster,
                                                                          const Load& load) {
  const Topology& topology = cluster.topology;
  std::map<std::string, std::map<std::string, double>> sent;
  for (const LinkWeight& one : load) {
    const Link& link = topology.link(one.link);
    if (topology.node(link.source).kind == NodeKind::Nic && !topology.node(link.target).server) {
      sent[topology.node(link.source).name][topology.node(link.target).name] += one.weight;
    }
  }
  return sent;
}

double sum_of(const std::map<std::string, std::map<std::string, double>>& sent) {
  double sum = 0.0;
  for (const auto& [nic, leaves] : sent) {
    for (const auto& [leaf, bytes] : leaves) {
      sum += bytes;
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

TEST_CASE("rings of an all_reduce put twice the data on each edge, trees once each way",
          "[nccl][timing]") {
  const double size = static_cast<double>(mib(256).count());
  const TimedJob rings(shipped_cluster("dgx-h100", {.nodes = 4}), forced("Ring", "Simple"));
  const Load ring = rings.timer().traffic(rings.plan(Function::AllReduce, mib(256)));
  // Each channel leaves each node once.
  REQUIRE(sum_of(sent_by_nics_traffic(rings.cluster, ring)) == Approx(4.0 * 2.0 * size * 31 / 32));
  const TimedJob trees(shipped_cluster("dgx-h100", {.nodes = 4}), forced("Tree", "Simple"));
  const Load tree = trees.timer().traffic(trees.plan(Function::AllReduce, mib(256)));
  REQUIRE(sum_of(sent_by_nics_traffic(trees.cluster, tree)) == Approx(3.0 * 2.0 * size));
}

TEST_CASE("a chain sends nothing into the root of a broadcast", "[nccl][timing]") {
  const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 1}), {{"NCCL_PROTO", "Simple"}});
  Timer timer = job.timer();
  const CallPlan plan = job.plan(Function::Broadcast, mib(64));
  for (const int root : {0, 3}) {
    double into_root = 0.0;
    double out_of_gpus = 0.0;
    for (const LinkWeight& one : timer.traffic(plan, root)) {
      const Link& link = job.cluster.topology.link(one.link);
      const bool into = link.target == job.cluster.gpus[static_cast<std::size_t>(root)];
      into_root += into ? one.weight : 0.0;
      const bool leaves = job.cluster.topology.node(link.source).kind == NodeKind::Gpu;
      out_of_gpus += leaves ? one.weight : 0.0;
    }
    REQUIRE(into_root == 0.0);
    REQUIRE(out_of_gpus == Approx(7.0 * static_cast<double>(mib(64).count())));
  }
}

TEST_CASE("the flags of LL are as many bytes as its data", "[nccl][timing]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2});
  const auto sent = [&](const char* protocol) {
    const TimedJob job(cluster, forced("Ring", protocol));
    return sum_of(
        sent_by_nics_traffic(cluster, job.timer().traffic(job.plan(Function::AllReduce, mib(1)))));
  };
  REQUIRE(sent("LL") == Approx(2.0 * sent("Simple")));
  REQUIRE(sent("LL128") == Approx(128.0 / 120.0 * sent("Simple")));
}

// What is sent to the port that is left goes by its plane.
TEST_CASE("both ports of an adapter carry half, and one that is left carries all",
          "[nccl][timing]") {
  for (const bool is_whole : {true, false}) {
    const std::vector<std::string> pulls =
        is_whole ? std::vector<std::string>{}
                 : std::vector<std::string>{"server1/nic3,plane1-leaf3"};
    const TimedJob job(shipped_cluster("alibaba-hpn", {.nodes = 2, .pulls = pulls}));
    auto sent =
        sent_by_nics_traffic(job.cluster, job.timer().traffic(Operation::AllToAll, mib(256)));
    REQUIRE(sum_of(sent) == Approx(16.0 * 8.0 * static_cast<double>(mib(16).count())));
    for (const auto& [nic, leaves] : sent) {
      INFO(nic);
      REQUIRE(leaves.size() == (is_whole || !nic.ends_with("/nic3") ? 2U : 1U));
      REQUIRE(leaves.begin()->second == Approx(leaves.rbegin()->second));
    }
  }
}

// A timer counts links once and multiplies by the size; a new timer has to count them itself.
TEST_CASE("what is counted of one size holds for others and for other calls", "[nccl][timing]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2});
  for (const char* const algorithm : {"Ring", "Tree", "NVLSTree"}) {
    INFO(algorithm);
    const TimedJob job(cluster, forced(algorithm, "Simple"));
    Timer timer = job.timer();
    for (const Bytes size : {mib(256), kib(512), mib(33)}) {
      const CallPlan plan = job.plan(Function::AllReduce, size);
      const Load again = timer.traffic(plan);
      const Load first = job.timer().traffic(plan);
      REQUIRE(again.size() == first.size());
      for (std::size_t link = 0; link < first.size(); ++link) {
        REQUIRE(again[link].link == first[link].link);
        REQUIRE(again[link].weight == first[link].weight);
      }
      (void)timer.traffic(Operation::AllToAll, size);
    }
  }
  const TimedJob job(cluster);
  Timer timer = job.timer();
  const Load small = timer.traffic(Operation::AllToAll, mib(64));
  const Load large = timer.traffic(Operation::AllToAll, mib(256));
  for (std::size_t link = 0; link < small.size(); ++link) {
    REQUIRE(large[link].weight == Approx(4.0 * small[link].weight));
  }
}

TEST_CASE("what NVSwitches add up is not counted here", "[nccl][timing]") {
  const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 1}), forced("NVLS", "Simple"));
  REQUIRE(job.timer().traffic(job.plan(Function::AllReduce, mib(256))).empty());
}

}  // namespace trainyard::nccl
