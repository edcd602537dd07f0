// SPDX-License-Identifier: Apache-2.0
// Trees. Where chunks change with the size a larger call may be a little faster: two per cent are
// let through.
#include "support/catch.h"

#include <cstdint>

#include "support/nccl_timing.h"

namespace trainyard::nccl {
namespace {

constexpr double kTreeChunkTolerance = 0.02;

Cluster single_gpus_tree(int nodes) {
  return shipped_cluster("h100-1gpu-400g", {.nodes = nodes});
}

SimTime tree_time(const TimedJob& job, Bytes size) {
  return job.timer().collective(job.plan(Function::AllReduce, size)).device;
}

}  // namespace

TEST_CASE("a tree of LL with little to carry goes up and down its levels", "[nccl][timing]") {
  // Of powers of two: 2 nodes have one level, 8 have three, and each is two messages more.
  const TimedJob two(single_gpus_tree(2), forced("Tree", "LL", 2));
  const TimedJob eight(single_gpus_tree(8), forced("Tree", "LL", 2));
  const Profile& profile = default_profile();
  const NetworkProfile& network = profile.networks.at("rdma");
  const SimTime hop = network.latency[Protocol::LL] + profile.tree_network_extra[Protocol::LL] +
                      network.host_cost * 2 + profile.gpus.at("hopper").ll_cost;
  const SimTime more = tree_time(eight, Bytes(64)) - tree_time(two, Bytes(64));
  REQUIRE(more / hop > 3.9);  // The wire comes on top.
  REQUIRE(more / hop < 6.0);
}

TEST_CASE("before 2.10 trees of Simple reduce all before they broadcast any", "[nccl][timing]") {
  const TimedJob job(single_gpus_tree(8), forced("Tree", "Simple", 1));
  const CallPlan plan = job.plan(Function::AllReduce, gib(1));
  const auto time = [&](Version version) {
    Communicator communicator = job.communicator;
    communicator.version = version;
    Timer timer(job.cluster, communicator, default_profile(), job.environment, {});
    return timer.collective(plan).device;
  };
  // Neither way alone takes longer than both at once, and each leaves one direction of most links
  // idle.
  REQUIRE(time(Version::V2_8) / time(Version::V2_10) > 1.25);
  REQUIRE(time(Version::V2_8) / time(Version::V2_10) < 2.0);
  REQUIRE(time(Version::V2_10) == time(kNewestVersion));
}

TEST_CASE("more bytes in the same tree take no less time", "[nccl][timing]") {
  for (const char* const protocol : {"LL", "LL128", "Simple"}) {
    const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 2}), forced("Tree", protocol, 4));
    Timer timer = job.timer();
    CallPlan before;
    SimTime time_before;
    for (std::int64_t size = 1 << 12; size <= 1 << 28; size *= 4) {
      const CallPlan plan = job.plan(Function::AllReduce, Bytes(size));
      const SimTime time = timer.collective(plan).device;
      INFO(protocol << " " << size);
      REQUIRE((!alike(plan, before) || time / time_before >= 1.0 - kTreeChunkTolerance));
      before = plan;
      time_before = time;
    }
  }
}

TEST_CASE(
    "a large tree carries its bytes once over the NICs of two nodes, twice over those of more",
    "[nccl][timing]") {
  // No more than the NIC's rate in either direction.
  const Bytes size = gib(1);
  for (const int nodes : {2, 4, 8}) {
    const TimedJob job(single_gpus_tree(nodes), forced("Tree", "Simple"));
    Timer::State state = job.state();
    const double carried = nodes == 2 ? 1.0 : 2.0;
    const double nic = state.node_network().rate.gigabytes_per_second();
    const double through = carried * bandwidth(size, tree_time(job, size));
    INFO(nodes << " nodes: " << through << " of " << nic);
    REQUIRE(through <= nic * 1.001);
    REQUIRE(through >= nic * 0.5);
  }
}

TEST_CASE("more nodes make a deeper tree", "[nccl][timing]") {
  for (const char* const protocol : {"LL", "LL128", "Simple"}) {
    SimTime before;
    for (const int nodes : {2, 4, 8}) {
      const TimedJob job(single_gpus_tree(nodes), forced("Tree", protocol, 2));
      const SimTime time = tree_time(job, kib(64));
      INFO(protocol << ", " << nodes << " nodes");
      REQUIRE(time > before);
      before = time;
    }
  }
}

TEST_CASE("with little to carry a tree of many nodes beats a ring", "[nccl][timing]") {
  const TimedJob tree(single_gpus_tree(10), forced("Tree", "LL", 2));
  const TimedJob ring(single_gpus_tree(10), forced("Ring", "LL", 2));
  REQUIRE(tree_time(tree, kib(1)) < tree_time(ring, kib(1)));
}

}  // namespace trainyard::nccl
