// SPDX-License-Identifier: Apache-2.0
// Calls in closed form are no faster than links allow, and no faster with a broken cable. Rates of
// links are from the catalogue, whatever the constants of the profile.
#include "support/catch.h"

#include <string>
#include <vector>

#include "support/nccl_timing.h"

namespace trainyard::nccl {
namespace {

SimTime exchanged(const std::string& cluster, Operation operation, Bytes size,
                  const ClusterOverrides& overrides) {
  const TimedJob job(shipped_cluster(cluster, overrides));
  return job.timer().point_to_point(operation, size).device;
}

// GB/s of algorithm bandwidth.
double exchange_rate(const std::string& cluster, Operation operation, Bytes size,
                     const ClusterOverrides& overrides = {}) {
  return bandwidth(size, exchanged(cluster, operation, size, overrides));
}

ClusterOverrides leaves_of_four(int oversubscription, const std::string& routing) {
  return {.nodes = 8,
          .settings = {"fabric.nodes_per_leaf=4", "fabric.routing=" + routing,
                       "fabric.oversubscription=" + std::to_string(oversubscription)}};
}

SimTime reduced(const TimedJob& job) {
  const CallPlan plan = job.plan(Function::AllReduce, gib(1));
  REQUIRE(plan.algorithm == Algorithm::NvlsTree);
  return job.timer().collective(plan).device;
}

}  // namespace

TEST_CASE("GPUs that share one NIC send no more than it does", "[nccl][timing]") {
  // Half of what eight GPUs send leaves by one NIC of 400 Gb/s.
  REQUIRE(exchange_rate("dgx-h100", Operation::AllToAll, gib(1),
                        {.nodes = 2, .settings = {"server.nics=1"}}) *
              8 / 2 <
          50.0);
  // Sixteen ranks in two servers with one NIC of 100 Gb/s each.
  const TimedJob job(shipped_cluster("rtx2080ti-ib"));
  const int local = job.communicator.max_ranks_per_node();
  const double out = local * static_cast<double>(job.communicator.ranks - local);
  REQUIRE(exchange_rate("rtx2080ti-ib", Operation::AllToAll, gib(4)) * out /
              job.communicator.ranks <
          12.5);
}

TEST_CASE("a GPU sends no more to its NICs than its PCIe link carries", "[nccl][timing]") {
  constexpr double kPcie5 = 64.0;
  REQUIRE(exchange_rate("aws-p5en", Operation::SendReceive, gib(4), {.nodes = 2}) < kPcie5);
  // Three quarters of what a GPU sends go to other servers.
  REQUIRE(exchange_rate("dgx-h100", Operation::AllToAll, gib(1),
                        {.nodes = 4, .settings = {"server.nics=16"}}) *
              3 / 4 <
          kPcie5);
}

TEST_CASE("no exchange gains by a cable that is pulled", "[nccl][timing]") {
  for (const Operation operation : {Operation::SendReceive, Operation::AllToAll}) {
    const SimTime whole = exchanged("dgx-h100", operation, gib(1), {.nodes = 4});
    for (const std::string pull : {"server0/nic0", "leaf0", "server1/nic5"}) {
      INFO(pull);
      REQUIRE(exchanged("dgx-h100", operation, gib(1), {.nodes = 4, .pulls = {pull}}) >= whole);
    }
  }
}

TEST_CASE("NVLSTree gains nothing by a NIC that is lost", "[nccl][timing]") {
  const Variables tree = forced("NVLSTree", "Simple");
  const TimedJob whole(shipped_cluster("dgx-h100", {.nodes = 4}), tree);
  const TimedJob broken(shipped_cluster("dgx-h100", {.nodes = 4, .pulls = {"server0/nic0"}}), tree);
  REQUIRE(broken.state().node_network().rate <= whole.state().node_network().rate);
  REQUIRE(reduced(broken) >= reduced(whole));
}

TEST_CASE("an all-to-all inside a server shares the PCIe links that its pairs have in common",
          "[nccl][timing]") {
  // Two switches of four GPUs with an uplink of PCIe 5.0: of what each GPU sends, four eighths go
  // up.
  REQUIRE(exchange_rate("rtx-pro-6000-two-switches", Operation::AllToAll, gib(4)) * 4 * 4 / 8 <
          64.0);
  for (const char* const cluster :
       {"rtx-pro-6000-two-switches", "rtx4090-pcie", "a100-pcie-bridges"}) {
    INFO(cluster);
    const TimedJob job(shipped_cluster(cluster));
    Timer::State state = job.state();
    const Load load =
        state.exchange_load(Operation::AllToAll, job.communicator.ranks - 1,
                            Timer::State::LinkShares::AsReached, state.own_connections());
    const SimTime time = state.exchange(Operation::AllToAll, gib(4));
    const double pair = static_cast<double>(gib(4).count()) / job.communicator.ranks;
    for (const LinkWeight& one : load) {
      const double rate = one.weight * pair / time.seconds();
      const Bandwidth link = job.cluster.topology.link(one.link).spec.bandwidth;
      REQUIRE(rate * 8 <= static_cast<double>(link.bits_per_second()));
    }
  }
}

TEST_CASE("uplinks of leaves limit all-to-all and NVLSTree, whatever the routing",
          "[nccl][timing]") {
  for (const std::string routing : {"static", "ecmp", "adaptive"}) {
    double before = 0.0;
    for (const int oversubscription : {1, 2, 4, 8}) {
      INFO(routing << ", " << oversubscription << " to one");
      const ClusterOverrides overrides = leaves_of_four(oversubscription, routing);
      // Half of what a GPU sends goes to the other leaf.
      const double sent =
          exchange_rate("hgx-h100-clos", Operation::AllToAll, gib(1), overrides) / 2;
      REQUIRE(sent < 50.0 / oversubscription);
      REQUIRE(sent > (oversubscription > 1 ? 30.0 : 15.0) / oversubscription);
      const TimedJob job(shipped_cluster("hgx-h100-clos", overrides), forced("NVLSTree", "Simple"));
      const double slower = reduced(job).seconds();
      REQUIRE(slower >= before);
      before = slower;
    }
  }
}

TEST_CASE("exchanges of more ranks than are looked at one by one see the fabric as well",
          "[nccl][timing]") {
  for (const int oversubscription : {1, 4}) {
    const double sent = exchange_rate(
        "hgx-h100-clos", Operation::AllToAll, gib(1),
        {.nodes = 64, .settings = {"fabric.oversubscription=" + std::to_string(oversubscription)}});
    INFO(oversubscription << ": " << sent);
    REQUIRE(sent < 50.0 / oversubscription * 64 / 56);
    REQUIRE(sent > 40.0 / oversubscription);
  }
}

TEST_CASE("a rooted exchange has all it sends on the root's links", "[nccl][timing]") {
  for (const Operation operation : {Operation::Scatter, Operation::Gather}) {
    const SimTime time = exchanged("rtx4090-pcie", operation, gib(1), {});
    // PCIe 4.0: 32 GB/s.
    REQUIRE(bandwidth(gib(1), time) * 7 / 8 < 32.0);
  }
}

}  // namespace trainyard::nccl
