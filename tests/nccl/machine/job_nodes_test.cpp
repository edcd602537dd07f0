// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/machine/job_nodes.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "nccl/machine/system.h"
#include "nccl/search/search.h"
#include "sim/config_error.h"
#include "support/nccl_servers.h"
#include "support/paths.h"

namespace trainyard::nccl {
namespace {

using Catch::Matchers::Equals;

const std::filesystem::path kConfigs = source_dir().string() + "/configs";

JobNodes nodes_of(const std::string& cluster, const ClusterOverrides& overrides = {},
                  Domains domains = Domains::Joined) {
  const Catalogue catalogue = Catalogue::load(kConfigs / "hardware");
  return job_nodes(load_cluster(kConfigs / "clusters" / (cluster + ".yaml"), catalogue, overrides),
                   domains);
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

TEST_CASE("servers of several kinds have a file each", "[nccl]") {
  const JobNodes nodes = nodes_of("mixed-a100");
  REQUIRE(nodes.kinds.size() == 2);
  REQUIRE(nodes.first_rank.size() == nodes.kind.size() + 1);
  REQUIRE(std::ranges::is_sorted(nodes.first_rank));
}

TEST_CASE("a rack that NVLink joins is one node", "[nccl]") {
  const JobNodes nodes = nodes_of("gb200-nvl72");
  REQUIRE(nodes.kind.size() == 2);
  REQUIRE(nodes.kinds.size() == 1);
  REQUIRE(nodes.kinds[0].size() == 18);
  REQUIRE(nodes.first_rank[1] == 72);
  // A rack and the beginning of another.
  const JobNodes part = nodes_of("gb200-nvl72", {.nodes = 20});
  REQUIRE(part.kinds.size() == 2);
  REQUIRE(part.kinds[1].size() == 2);
  REQUIRE(part.first_rank[2] - part.first_rank[1] == 8);
}

TEST_CASE("GPUs that no rank uses are not in the file", "[nccl]") {
  const JobNodes nodes = nodes_of("dgx-h100", {.gpus_per_node = 3});
  REQUIRE(nodes.first_rank[1] == 3);
  REQUIRE(build_system(nodes.kinds[0], {}).gpus.size() == 3);
  REQUIRE(build_system(nodes.kinds[0], {}).nets.size() == 8);
}

TEST_CASE("shipped clusters have graphs", "[nccl]") {
  const std::vector<std::string> clusters{
      "dgx-1",        "dgx-2",   "dgx-a100",    "dgx-h100",    "hgx-b200",
      "aws-p5",       "aws-p4d", "gcp-a3-high", "gcp-a3-mega", "azure-nd-a100-v4",
      "rtx4090-pcie", "alps",    "polaris",     "gb200-nvl72", "l40s-pcie"};
  for (const std::string& name : clusters) {
    INFO(name);
    const JobNodes nodes = nodes_of(name);
    const SearchOptions options{.multi_node = nodes.kind.size() > 1};
    for (const std::vector<NcclSystem>& kind : nodes.kinds) {
      for (const MachinePart& part : make_machines(kind, options)) {
        const GraphSet graphs = search_graphs(part.machine);
        // Not the fallback.
        REQUIRE(graphs.ring.bw_intra > 0.1);
        REQUIRE(graphs.tree.bw_intra > 0.1);
        REQUIRE(graphs.nvls.exists() ==
                (part.machine.system().nvswitch && part.machine.system().oldest().has_nvls));
      }
    }
  }
}

TEST_CASE("the cube mesh of the DGX-1 carries six rings each way", "[nccl]") {
  const GraphSet graphs = search_graphs(nodes_of("dgx-1").kinds[0], {});
  // 6 links of 20 GB/s, each ring one of them.
  REQUIRE(graphs.ring.channel_count == 6);
  REQUIRE(graphs.ring.bw_intra == 20.0);
  REQUIRE(graphs.ring.type_intra == PathType::Nvl);
}

TEST_CASE("two ports of one adapter are one NIC unless told otherwise", "[nccl]") {
  const std::vector<NcclSystem> kind = nodes_of("alibaba-hpn").kinds[0];
  REQUIRE(search_graphs(kind, {.multi_node = true}).ring.channel_count == 8);
  REQUIRE(search_graphs(kind, {.multi_node = true, .merge_ports = false}).ring.channel_count == 16);
}

TEST_CASE("NICs that the plugin groups are one, with the speed of all", "[nccl]") {
  const std::vector<NcclSystem> kind = nodes_of("aws-p5").kinds[0];
  const System system = build_system(kind, {});
  REQUIRE(system.nets.size() == 8);
  for (int i = 0; i < 8; ++i) {
    REQUIRE(system.nets[static_cast<std::size_t>(i)].dev == i);
    REQUIRE(system.nets[static_cast<std::size_t>(i)].bandwidth == 50.0F);
  }
  // As other servers with a NIC of 400 Gb/s for each GPU.
  const GraphSet graphs = search_graphs(kind, {.multi_node = true});
  const GraphSet others = search_graphs(nodes_of("dgx-h100").kinds[0], {.multi_node = true});
  REQUIRE(graphs.ring.channel_count == others.ring.channel_count);
  REQUIRE(graphs.ring.bw_inter == others.ring.bw_inter);
}

TEST_CASE("each GPU has its library", "[nccl][rccl]") {
  const Catalogue catalogue = Catalogue::load(kConfigs / "hardware");
  const auto of = [&](const char* gpu) { return library_of(catalogue.gpus().at(gpu)); };
  REQUIRE(of("H100-SXM") == "nccl");
  REQUIRE(of("MI250X") == "rccl");
  REQUIRE(of("MI300X") == "rccl");
  REQUIRE(of("MI355X") == "rccl");
  REQUIRE_FALSE(of("Ascend-910B").has_value());
}

TEST_CASE("what runs neither NCCL nor RCCL is refused", "[nccl]") {
  REQUIRE_THROWS_AS(search_graphs(nodes_of("ascend-910b").kinds[0], {}), ConfigError);
}

}  // namespace trainyard::nccl
