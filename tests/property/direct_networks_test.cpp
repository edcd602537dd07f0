// SPDX-License-Identifier: Apache-2.0
// Every collective runs to its end on networks without tiers, and no faster than the bound.
#include "support/catch.h"

#include <string>
#include <vector>

#include "collectives/placement/aggregation.h"
#include "collectives/run/run.h"
#include "support/clusters.h"

namespace trainyard {
namespace {

const std::string kDragonfly =
    "template: dragonfly, groups: 4, switches_per_group: 4, endpoints_per_switch: 2, "
    "global_links: 2, switch: Rosetta, local_cable: 2 m, global_cable: 20 m";

TEST_CASE("all collectives run on a torus of chips, a dragonfly and a graph") {
  std::vector<Cluster> clusters;
  clusters.push_back(
      cluster_of(64, 0, "template: torus, shape: [4, 4, 4], link: ICI-v4, attach: gpu"));
  for (const std::string policy : {"ecmp", "valiant", "adaptive"}) {
    clusters.push_back(cluster_of(32, 1, kDragonfly + ", routing: " + policy));
  }
  clusters.push_back(cluster_of(
      4, 1,
      "template: graph, cable: 1 m, switches: [{name: s, part: Rosetta, count: 2}], links: "
      "[{from: server0/nic0, to: s0}, {from: server1/nic0, to: s0}, {from: server2/nic0, to: s1}, "
      "{from: server3/nic0, to: s1}, {from: s0, to: s1, count: 2}]"));
  for (const Cluster& cluster : clusters) {
    for (const Operation operation : kOperations) {
      for (const Algorithm algorithm : algorithms_for(operation)) {
        if (placement_error(cluster, Routing(cluster.topology, cluster.routing), algorithm)) {
          continue;  // No switch here adds up.
        }
        INFO(cluster.gpus.size() << " GPUs, " << to_string(algorithm) << " "
                                 << to_string(operation));
        CollectiveJob job{.operation = operation, .algorithm = algorithm, .size = mib(1)};
        const SimTime flow = run_collective(cluster, job).time;
        job.fidelity = Fidelity::Analytical;
        REQUIRE(run_collective(cluster, job).time <= flow);
      }
    }
  }
}

// The ranks of a line of the mesh follow one another along it, so the ring takes every link of the
// line once in each direction: 2 (n - 1) / n of the size at the rate of a link, for each channel.
TEST_CASE("a ring on a ring of chips runs at the rate of a link") {
  const Cluster cluster = cluster_of(8, 0, "template: ring, shape: [8], link: ICI-v4, attach: gpu");
  const Bytes size = gib(1);
  const CollectiveResult result =
      run_collective(cluster, {.algorithm = &kRing, .size = size, .channels = 1});
  const SimTime bound = transfer_time(Bytes(size.count() / 8 * 14), gigabytes_per_second(45));
  REQUIRE(result.time >= bound);
  REQUIRE(result.time / bound < 1.01);
}

}  // namespace
}  // namespace trainyard
