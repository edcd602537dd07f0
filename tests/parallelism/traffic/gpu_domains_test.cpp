// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/traffic/gpu_domains.h"

#include <set>
#include <vector>

#include "support/built_clusters.h"

namespace trainyard {

TEST_CASE("a domain is a server, or all servers that an NVSwitch joins", "[cluster-times]") {
  const Cluster servers = shipped_cluster("dgx-h100", {.nodes = 2});
  const std::vector<int> apart = domains_of_gpus(servers);
  REQUIRE(apart.size() == 16);
  REQUIRE(std::set<int>(apart.begin(), apart.end()) == std::set<int>{0, 1});
  REQUIRE(apart[7] != apart[8]);
  const Cluster joined = shipped_cluster("gb200-nvl72", {.nodes = 2});
  const std::vector<int> together = domains_of_gpus(joined);
  REQUIRE(std::set<int>(together.begin(), together.end()).size() == 1);
}

}  // namespace trainyard
