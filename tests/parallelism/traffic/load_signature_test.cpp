// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/traffic/load_signature.h"

#include <vector>

#include "network/traffic/transfers.h"
#include "parallelism/traffic/cluster_times.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

std::vector<std::int64_t> signature_of(const Cluster& cluster, std::size_t from, std::size_t to) {
  Routing routing(cluster.topology, cluster.routing);
  ConnectionLoads connections(routing);
  Load load;
  REQUIRE(connections.add({.source = cluster.gpus[from], .target = cluster.gpus[to]}, 1.0, load));
  const std::vector<Load> loads{load};
  std::vector<std::int64_t> key;
  append_signature(cluster.topology, loads, connections, key);
  key.push_back(min_rate(cluster.topology, load));
  return key;
}

}  // namespace

TEST_CASE("messages of one signature take as long alone, and others do not", "[load-signature]") {
  for (const std::string name : {"dgx-h100", "hgx-h100-clos"}) {
    INFO(name);
    const Cluster cluster = shipped_cluster(name, {.nodes = 4});
    const auto time = [&](std::size_t from, std::size_t to) {
      const std::vector<Transfer> one{{.source = cluster.gpus[from], .target = cluster.gpus[to]}};
      return run_transfers(cluster, one, mib(8)).front();
    };
    REQUIRE(signature_of(cluster, 0, 8) == signature_of(cluster, 17, 25));
    REQUIRE(time(0, 8) == time(17, 25));
    REQUIRE(signature_of(cluster, 0, 1) != signature_of(cluster, 0, 8));
    REQUIRE(time(0, 1) != time(0, 8));
  }
}

TEST_CASE("a slower link on the way is another signature", "[load-signature]") {
  const Cluster whole = shipped_cluster("dgx-h100", {.nodes = 2});
  const Cluster slower = shipped_cluster(
      "dgx-h100",
      {.nodes = 2, .settings = {"faults=[{between: [server1/nic0, server1/pcie0], lanes: 8}]"}});
  REQUIRE(signature_of(whole, 0, 8).back() > signature_of(slower, 0, 8).back());
}

}  // namespace trainyard
