// SPDX-License-Identifier: Apache-2.0
#include "network/sharing/fabric_cuts.h"

#include <cmath>

#include "support/built_clusters.h"
#include "support/catch.h"

namespace trainyard {
namespace {

// Two servers on each of two leaves, whose links to spines have so many times less than NICs.
Cluster two_leaves(int oversubscription) {
  return shipped_cluster("hgx-h100-clos", {.nodes = 4,
                                           .settings = {"fabric.nodes_per_leaf=2",
                                                        "fabric.oversubscription=" +
                                                            std::to_string(oversubscription)}});
}

// From GPU to GPU of the server that stands so many servers further.
Load shifted(const Cluster& cluster, int servers) {
  Routing routing(cluster.topology, cluster.routing);
  ConnectionLoads ways(routing);
  Load load;
  const std::size_t ranks = cluster.gpus.size();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::size_t peer = (rank + 8 * static_cast<std::size_t>(servers)) % ranks;
    REQUIRE(ways.add({.source = cluster.gpus[rank], .target = cluster.gpus[peer]}, 1.0, load));
  }
  merge(load);
  return load;
}

}  // namespace

TEST_CASE("all links that lead out of a leaf are one cut", "[load_sharing]") {
  for (const int oversubscription : {1, 2, 4, 8}) {
    const Cluster cluster = two_leaves(oversubscription);
    const FabricCuts cuts(cluster.topology);
    // Of two servers further all goes through spines, wherever hashes put it; of one further that
    // of every second server, which has all uplinks of its leaf.
    const double nic = 8e9 * 48;
    REQUIRE(cuts.rate(shifted(cluster, 2)) == Approx(nic / oversubscription).epsilon(0.05));
    REQUIRE(cuts.rate(shifted(cluster, 1)) ==
            Approx(nic / std::max(1.0, oversubscription / 2.0)).epsilon(0.05));
  }
}

TEST_CASE("cuts leave no load slower than its fullest link does", "[load_sharing]") {
  const Cluster cluster = two_leaves(4);
  const FabricCuts cuts(cluster.topology);
  for (const int servers : {1, 2, 3}) {
    const Load load = shifted(cluster, servers);
    REQUIRE(cuts.rate(load) >= shared_rates(cluster.topology, std::vector<Load>{load}).front());
  }
}

TEST_CASE("what crosses no cut has no limit", "[load_sharing]") {
  const Cluster cluster = two_leaves(4);
  REQUIRE(std::isinf(FabricCuts(cluster.topology).rate({})));
  const Load load = without_fabric(cluster.topology, shifted(cluster, 2));
  for (const LinkWeight& one : load) {
    REQUIRE_FALSE(is_between_switches(cluster.topology, one.link));
  }
}

}  // namespace trainyard
