// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/machine/job_nodes.h"

#include <filesystem>
#include <string>
#include <vector>

#include "nccl/machine/system.h"
#include "sim/config_error.h"
#include "support/nccl_servers.h"
#include "support/paths.h"

namespace trainyard::nccl {
namespace {

using Catch::Matchers::Equals;

const std::filesystem::path kConfigs = source_dir().string() + "/configs";

JobNodes nodes_of(const std::string& cluster, const ClusterOverrides& overrides,
                  Domains domains = Domains::Joined) {
  const Catalogue catalogue = Catalogue::load(kConfigs / "hardware");
  return job_nodes(load_cluster(kConfigs / "clusters" / (cluster + ".yaml"), catalogue, overrides),
                   catalogue, domains);
}

std::size_t gpus_of(const JobNodes& nodes, std::size_t kind) {
  return build_system(nodes.kinds[kind], {}).gpus.size();
}

}  // namespace

TEST_CASE("nodes of one file have the first GPUs of it, the last node perhaps fewer", "[nccl]") {
  const NcclSystem server = plain_server(h100_server());
  const JobNodes all = job_nodes(server, {.nodes = 3});
  REQUIRE(all.kinds.size() == 1);
  REQUIRE(all.kind == std::vector<int>{0, 0, 0});
  REQUIRE(all.first_rank == std::vector<int>{0, 8, 16, 24});
  const JobNodes part = job_nodes(server, {.nodes = 3, .gpus_per_node = 4, .ranks = 6});
  REQUIRE(part.kind == std::vector<int>{0, 1});
  REQUIRE(part.first_rank == std::vector<int>{0, 4, 6});
  REQUIRE(gpus_of(part, 0) == 4);
  REQUIRE(gpus_of(part, 1) == 2);
  const JobNodes few = job_nodes(server, {.nodes = 1, .ranks = 3});
  REQUIRE(few.kind == std::vector<int>{0});
  REQUIRE(gpus_of(few, 0) == 3);
}

TEST_CASE("the first GPUs are those of the first ranks, wherever they stand in the file",
          "[nccl]") {
  NcclSystem server = plain_server({.gpus = 4, .sockets = 1});
  std::vector<NcclPci>& bridges = server.cpus[0].pcis;
  for (std::size_t gpu = 0; gpu < 4; ++gpu) {
    bridges[gpu].pcis[0].gpus[0].rank = 3 - static_cast<int>(gpu);
  }
  const JobNodes nodes = job_nodes(server, {.gpus_per_node = 2});
  const std::vector<NcclPci>& left = nodes.kinds[0][0].cpus[0].pcis;
  REQUIRE(left[0].pcis[0].gpus.empty());
  REQUIRE(left[1].pcis[0].gpus.empty());
  REQUIRE(left[2].pcis[0].gpus[0].rank == 1);
  REQUIRE(left[3].pcis[0].gpus[0].rank == 0);
}

TEST_CASE("more GPUs than the file has are refused", "[nccl]") {
  const NcclSystem server = plain_server(h100_server());
  REQUIRE_THROWS_WITH(
      job_nodes(server, {.gpus_per_node = 9}),
      Equals("--gpus-per-node: expected at most 8, the GPUs of the topology file, found 9"));
  REQUIRE_THROWS_WITH(
      job_nodes(server, {.nodes = 2, .ranks = 17}),
      Equals("--ranks: expected at most 16 (2 nodes of 8 GPUs; --nodes gives more), found 17"));
}

TEST_CASE("servers of a cluster that are alike are one kind", "[nccl]") {
  const JobNodes nodes = nodes_of("dgx-h100", {.nodes = 4});
  REQUIRE(nodes.kinds.size() == 1);
  REQUIRE(nodes.kind == std::vector<int>{0, 0, 0, 0});
  REQUIRE(nodes.first_rank == std::vector<int>{0, 8, 16, 24, 32});
}

TEST_CASE("an NVLink domain of several servers is one node, or one for each server", "[nccl]") {
  const JobNodes joined = nodes_of("gb200-nvl72", {.nodes = 18});
  REQUIRE(joined.first_rank == std::vector<int>{0, 72});
  REQUIRE(joined.kinds.at(0).size() == 18);
  const JobNodes apart = nodes_of("gb200-nvl72", {.nodes = 18}, Domains::Apart);
  REQUIRE(apart.kind.size() == 18);
  REQUIRE(apart.first_rank.at(1) == 4);
  REQUIRE(apart.first_rank.back() == 72);
}

}  // namespace trainyard::nccl
