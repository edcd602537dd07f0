// SPDX-License-Identifier: Apache-2.0
// The packet engine against the flow engine where both should say the same: long transfers alone on
// their path, and collectives in which nobody contends.
#include "support/catch.h"

#include <cmath>
#include <filesystem>

#include "collectives/run/run.h"
#include "network/contract/network.h"
#include "support/effort.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/paths.h"
#include "support/shipped.h"
#include "topology/cluster/cluster.h"

namespace trainyard {
namespace {

using namespace literals;

// What b takes more than a.
double excess(SimTime a, SimTime b) {
  return b / a - 1.0;
}

TEST_CASE("a long transfer alone takes what the flow engine says, within half a percent") {
  for (std::uint64_t seed = 0; seed < cases(60); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "alone");
    // Links of one rate: behind a slower one DCQCN has to find that first.
    const LinkSpec link = random_link(random);
    const TestFabric fabric = clos({.leaves = 2, .hosts_per_leaf = 1, .spines = 2}, link, link);
    const Traffic traffic{.connections = {{.source = 0, .target = 1}},
                          .messages = {{.connection = 0, .time = SimTime(), .size = 20'000'000_B}}};
    const SimTime flow = run_traffic(fabric, traffic, Fidelity::Flow).arrivals[0];
    const SimTime packet = run_traffic(fabric, traffic, Fidelity::Packet).arrivals[0];
    REQUIRE(excess(flow, packet) > -0.0001);
    REQUIRE(excess(flow, packet) < 0.005);
  }
}

Cluster dgx(int nodes) {
  ClusterOverrides overrides;
  overrides.nodes = nodes;
  return load_cluster(source_dir() / "configs/clusters/dgx-h100.yaml", shipped_catalogue(),
                      overrides);
}

SimTime time_of(const Cluster& cluster, Operation operation, int channels, Fidelity fidelity) {
  return run_collective(cluster, {.operation = operation,
                                  .algorithm = &kRing,
                                  .size = 64_MiB,
                                  .channels = channels,
                                  .fidelity = fidelity})
      .time;
}

TEST_CASE("collectives without contention take what the flow engine says, within two percent") {
  const Cluster cluster = dgx(1);
  for (const Operation operation :
       {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter}) {
    const SimTime flow = time_of(cluster, operation, 1, Fidelity::Flow);
    const SimTime packet = time_of(cluster, operation, 1, Fidelity::Packet);
    INFO(to_string(operation) << " " << to_string(flow) << " " << to_string(packet));
    REQUIRE(std::abs(excess(flow, packet)) < 0.02);
  }
}

TEST_CASE("ring all_reduce on 64 GPUs takes what the flow engine says, within three percent") {
  const Cluster cluster = dgx(8);
  const SimTime flow = time_of(cluster, Operation::AllReduce, 1, Fidelity::Flow);
  const SimTime packet = time_of(cluster, Operation::AllReduce, 1, Fidelity::Packet);
  INFO(to_string(flow) << " " << to_string(packet));
  REQUIRE(std::abs(excess(flow, packet)) < 0.03);
}

}  // namespace
}  // namespace trainyard
