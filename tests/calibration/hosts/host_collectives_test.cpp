// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/hosts/host_collectives.h"

#include "support/built_clusters.h"
#include "support/mpi.h"

namespace trainyard {

TEST_CASE("ranks over TCP are on a host each, others in the first one", "[calibration][mpi]") {
  const Cluster cluster = shipped_cluster("dgx-a100", {.nodes = 3});
  const MpiRules rules = shipped_mpi_rules();
  HostSet set{.name = "set.yaml", .cpu = "some CPU", .cores = 4, .mpi = "Open MPI", .rows = {}};
  for (const char* const path : {"shared", "tcp"}) {
    set.rows.push_back({.test = "broadcast", .path = path, .ranks = 3, .size = kib(4)});
  }
  set.rows.push_back({.test = "broadcast", .path = "shared", .ranks = 9, .size = kib(4)});
  const HostCollectives collectives(set, cluster, rules);
  MpiProfile costly = shipped_mpi_profile();
  const SimTime inside = collectives.time(0, costly);
  const SimTime between = collectives.time(1, costly);
  costly.tcp.send = milliseconds(1);
  REQUIRE(collectives.time(0, costly) == inside);
  REQUIRE(collectives.time(1, costly) > between + milliseconds(1) - microseconds(4));
  set.rows[1].ranks = 4;
  REQUIRE_THROWS_WITH(HostCollectives(set, cluster, rules),
                      "set.yaml: expected a cluster with a server for each of the 4 ranks, found " +
                          cluster.name + " with 3");
  set.rows[1].ranks = 3;
  set.cores = 9;
  REQUIRE_THROWS_WITH(HostCollectives(set, cluster, rules),
                      "set.yaml: expected a cluster with a GPU of one server for each of the 9 "
                      "ranks, found " +
                          cluster.name + " with 8");
}

}  // namespace trainyard
