// SPDX-License-Identifier: Apache-2.0
// Which grid the ranks of a cluster form, and that rings along it use all its links.
#include "support/catch.h"

#include "collectives/placement/rank_grid.h"

#include <string>
#include <utility>
#include <vector>

#include "collectives/run/run.h"
#include "support/clusters.h"
#include "support/servers.h"

namespace trainyard {
namespace {

using Dimensions = std::vector<int>;

std::pair<Dimensions, std::string> grid_of(const Cluster& cluster) {
  std::string error;
  const auto grid = rank_grid(cluster, error);
  return {grid ? grid->dimensions : Dimensions{}, error};
}

Cluster torus(const std::string& shape, int gpus) {
  return cluster_of(gpus, 0, "template: torus, shape: " + shape + ", link: ICI-v4, attach: gpu");
}

TEST_CASE("servers are a grid of two dimensions if they are alike") {
  REQUIRE(grid_of(cluster_of({{.gpus = 4, .nics = 4}, {.gpus = 4, .nics = 4}})).first ==
          Dimensions{4, 2});
  REQUIRE(grid_of(cluster_of({{.gpus = 4, .nics = 4}})).first == Dimensions{4});
  REQUIRE(grid_of(cluster_of({{.gpus = 1, .nics = 1}, {.gpus = 1, .nics = 1}})).first ==
          Dimensions{2});
  REQUIRE(grid_of(cluster_of({{.gpus = 4, .nics = 4}, {.gpus = 3, .nics = 3}})).second ==
          "the servers have different numbers of ranks");
}

TEST_CASE("chips on a torus have its dimensions, if all of them take part") {
  Cluster cluster = torus("[4, 2, 3]", 24);
  REQUIRE(grid_of(cluster) == std::pair(Dimensions{4, 2, 3}, std::string()));
  cluster.gpus.resize(12);
  cluster.server_gpus.resize(12);
  REQUIRE(grid_of(cluster).second == "the ranks do not fill the grid of the fabric");
}

TEST_CASE("on an equal torus rings along the dimensions reach the bandwidth of all links") {
  // Two dimensions: four links each way of 45 GB/s; 2 (N-1)/N S in all.
  const Cluster cluster = torus("[4, 4]", 16);
  const Bytes size = gib(1);
  const auto time = [&](Algorithm algorithm) {
    return run_collective(cluster, {.algorithm = algorithm, .size = size}).time;
  };
  const SimTime bound = transfer_time(Bytes(size.count() / 16 * 30 / 4), gigabytes_per_second(45));
  REQUIRE(time(&kMultiRing) >= bound);
  REQUIRE(time(&kMultiRing) / bound < 1.01);
  // The two rings of `ring` use half of the links.
  REQUIRE(time(&kRing) / bound > 1.99);
}

}  // namespace
}  // namespace trainyard
