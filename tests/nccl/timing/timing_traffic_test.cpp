// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/timing/timing_traffic.h"

#include <map>
#include <string>

#include "support/nccl_timing.h"

namespace trainyard::nccl {
namespace {

CallTraffic traffic_of(const TimedJob& job) {
  return {job.cluster, job.communicator, default_profile(), job.environment};
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

TEST_CASE("rings of an all_reduce put twice the data on each edge, trees once each way",
          "[nccl][timing]") {
  const double size = static_cast<double>(mib(256).count());
  const TimedJob rings(shipped_cluster("dgx-h100", {.nodes = 4}), forced("Ring", "Simple"));
  const Load ring = traffic_of(rings).of(rings.plan(Function::AllReduce, mib(256)));
  // Each channel leaves each node once.
  REQUIRE(sum_of(sent_by_nics_traffic(rings.cluster, ring)) == Approx(4.0 * 2.0 * size * 31 / 32));
  const TimedJob trees(shipped_cluster("dgx-h100", {.nodes = 4}), forced("Tree", "Simple"));
  const Load tree = traffic_of(trees).of(trees.plan(Function::AllReduce, mib(256)));
  REQUIRE(sum_of(sent_by_nics_traffic(trees.cluster, tree)) == Approx(3.0 * 2.0 * size));
}

TEST_CASE("a chain sends nothing into the root of a broadcast", "[nccl][timing]") {
  const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 1}), {{"NCCL_PROTO", "Simple"}});
  CallTraffic traffic = traffic_of(job);
  const CallPlan plan = job.plan(Function::Broadcast, mib(64));
  for (const int root : {0, 3}) {
    double into_root = 0.0;
    double out_of_gpus = 0.0;
    for (const LinkWeight& one : traffic.of(plan, root)) {
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
        sent_by_nics_traffic(cluster, traffic_of(job).of(job.plan(Function::AllReduce, mib(1)))));
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
        sent_by_nics_traffic(job.cluster, traffic_of(job).of(Operation::AllToAll, mib(256)));
    REQUIRE(sum_of(sent) == Approx(16.0 * 8.0 * static_cast<double>(mib(16).count())));
    for (const auto& [nic, leaves] : sent) {
      INFO(nic);
      REQUIRE(leaves.size() == (is_whole || !nic.ends_with("/nic3") ? 2U : 1U));
      REQUIRE(leaves.begin()->second == Approx(leaves.rbegin()->second));
    }
  }
}

TEST_CASE("what NVSwitches add up is not counted here", "[nccl][timing]") {
  const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 1}), forced("NVLS", "Simple"));
  REQUIRE(traffic_of(job).of(job.plan(Function::AllReduce, mib(256))).empty());
}

}  // namespace trainyard::nccl
