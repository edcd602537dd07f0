// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/traffic/call_traffic.h"

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "support/nccl_timing.h"

namespace trainyard {
namespace {

std::vector<int> first_ranks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Bytes that leave a device.
double bytes_out(const Cluster& cluster, const std::vector<LinkTraffic>& traffic, NodeId device) {
  double sum = 0.0;
  for (const LinkTraffic& link : traffic) {
    const bool leaves = cluster.topology.link(link.link).source == device;
    sum += leaves ? static_cast<double>(link.total().count()) : 0.0;
  }
  return sum;
}

// Bytes that NICs send into the fabric.
double bytes_of_nics(const Cluster& cluster, const std::vector<LinkTraffic>& traffic) {
  double sum = 0.0;
  for (const LinkTraffic& link : traffic) {
    const Link& of = cluster.topology.link(link.link);
    const bool leaves = cluster.topology.node(of.source).server.has_value() &&
                        !cluster.topology.node(of.target).server.has_value();
    sum += leaves ? static_cast<double>(link.total().count()) : 0.0;
  }
  return sum;
}

std::vector<LinkTraffic> traffic_of_calls(const Cluster& cluster, const CallRuntime& runtime,
                                          const std::vector<int>& ranks,
                                          const RepeatedCalls& calls) {
  CallTraffic counter(cluster, runtime);
  counter.add_calls("calls", ranks, calls);
  return counter.take();
}

const double kSize = static_cast<double>(mib(64).count());

}  // namespace

TEST_CASE("plain calls of all sizes are rings that each rank sends its share in",
          "[link-traffic]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 1});
  const auto traffic = traffic_of_calls(cluster, {}, first_ranks(8),
                                        {{{Operation::AllGather, mib(64)}, 3.0},
                                         {{Operation::AllGather, mib(32)}, 2.0},
                                         {{Operation::AllReduce, mib(64)}, 0.5}});
  for (const NodeId gpu : cluster.gpus) {
    REQUIRE(bytes_out(cluster, traffic, gpu) == Approx((3.0 + 1.0 + 1.0) * kSize * 7.0 / 8.0));
  }
}

// NVSwitches gather what ranks hold and multicast what heads write: of S bytes over n ranks each
// gives S and an n-th of the sum, where in a ring it sends 2 (n - 1) / n of them.
TEST_CASE("with NCCL a call goes by what it takes for the size", "[link-traffic]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 1});
  const CallRuntime runtime{.nccl = &nccl::default_profile()};
  const auto large =
      traffic_of_calls(cluster, runtime, first_ranks(8), {{{Operation::AllReduce, gib(1)}, 4.0}});
  for (const NodeId gpu : cluster.gpus) {
    REQUIRE(bytes_out(cluster, large, gpu) == Approx(4.0 * 16.0 * kSize * 9.0 / 8.0).epsilon(0.01));
  }
  // Volta has none of them.
  const Cluster volta = shipped_cluster("dgx-1", {.nodes = 1});
  const auto rings =
      traffic_of_calls(volta, runtime, first_ranks(8), {{{Operation::AllGather, gib(1)}, 1.0}});
  double sum = 0.0;
  for (const NodeId gpu : volta.gpus) {
    sum += bytes_out(volta, rings, gpu);
  }
  REQUIRE(sum == Approx(7.0 * static_cast<double>(gib(1).count())).epsilon(0.02));
}

TEST_CASE("ranks need not be in order, and groups of one send nothing", "[link-traffic]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2});
  const CallRuntime runtime{.nccl = &nccl::default_profile()};
  const RepeatedCalls calls{{{Operation::AllGather, gib(1)}, 1.0}};
  const auto traffic = traffic_of_calls(cluster, runtime, {8, 0}, calls);
  // Half of it each way.
  REQUIRE(bytes_of_nics(cluster, traffic) ==
          Approx(static_cast<double>(gib(1).count())).epsilon(0.02));
  REQUIRE(traffic_of_calls(cluster, runtime, {8}, calls).empty());
  REQUIRE(traffic_of_calls(cluster, runtime, {0, 8}, {}).empty());
}

TEST_CASE("a message counts on each link of its way, by purpose", "[link-traffic]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2});
  CallTraffic counter(cluster, {});
  counter.add_message("there", 0, 8, 1000.0);
  counter.add_message("there", 0, 8, 500.0);
  counter.add_message("back", 8, 0, 7.0);
  std::map<std::string, double> of_nics;
  for (const LinkTraffic& link : counter.take()) {
    const Link& of = cluster.topology.link(link.link);
    if (cluster.topology.node(of.source).kind == NodeKind::Nic &&
        !cluster.topology.node(of.target).server) {
      of_nics[link.parts.front().purpose] += static_cast<double>(link.total().count());
    }
  }
  REQUIRE(of_nics == std::map<std::string, double>{{"there", 1500.0}, {"back", 7.0}});
}

// A NIC sends each element up once and gets the sum once, whatever the number of nodes.
TEST_CASE("switches that add up are counted as the plain algorithm", "[link-traffic]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 4});
  Routing routing(cluster.topology, cluster.routing);
  const Load load = switched_traffic(cluster, routing, nccl::Algorithm::CollNetDirect,
                                     Operation::AllReduce, RankId(0));
  double sent = 0.0;
  for (const LinkWeight& one : load) {
    const Link& link = cluster.topology.link(one.link);
    const bool leaves = cluster.topology.node(link.source).server.has_value() &&
                        !cluster.topology.node(link.target).server.has_value();
    sent += leaves ? one.weight : 0.0;
  }
  REQUIRE(sent == Approx(4.0).epsilon(0.01));
  REQUIRE(switched_traffic(cluster, routing, nccl::Algorithm::Ring, Operation::AllReduce, RankId(0))
              .empty());
}

}  // namespace trainyard
