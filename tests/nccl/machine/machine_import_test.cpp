// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/machine/machine_import.h"

#include <string>
#include <vector>

#include "nccl/search/search.h"
#include "sim/config_error.h"
#include "support/built_clusters.h"

namespace trainyard::nccl {
namespace {

ClusterSystems systems_of(const std::string& name, const ClusterOverrides& overrides = {}) {
  return import_systems(shipped_cluster(name, overrides), shipped_catalogue());
}

TEST_CASE("equal servers are one kind, ranks counted through", "[nccl]") {
  const ClusterSystems systems = systems_of("dgx-h100");
  REQUIRE(systems.kinds.size() == 1);
  REQUIRE(systems.kinds[0].size() == 1);
  REQUIRE(systems.nodes.size() == 4);
  REQUIRE(systems.nodes[3].first_rank == 24);
  REQUIRE(systems.nodes[3].ranks == 8);
  REQUIRE(systems.nodes[3].servers == std::vector{ServerId(3)});
}

TEST_CASE("servers of several kinds have a file each", "[nccl]") {
  const ClusterSystems systems = systems_of("mixed-a100");
  REQUIRE(systems.kinds.size() == 2);
  int rank = 0;
  for (const ClusterNode& node : systems.nodes) {
    REQUIRE(node.first_rank == rank);
    rank += node.ranks;
  }
}

TEST_CASE("a rack that NVLink joins is one node", "[nccl]") {
  const ClusterSystems systems = systems_of("gb200-nvl72");
  REQUIRE(systems.nodes.size() == 2);
  REQUIRE(systems.kinds.size() == 1);
  REQUIRE(systems.kinds[0].size() == 18);
  REQUIRE(systems.nodes[1].first_rank == 72);
  // A rack and the beginning of another.
  const ClusterSystems part = systems_of("gb200-nvl72", {.nodes = 20});
  REQUIRE(part.kinds.size() == 2);
  REQUIRE(part.kinds[1].size() == 2);
  REQUIRE(part.nodes[1].ranks == 8);
}

TEST_CASE("GPUs that no rank uses are not in the file", "[nccl]") {
  const ClusterSystems systems = systems_of("dgx-h100", {.gpus_per_node = 3});
  REQUIRE(systems.nodes[1].first_rank == 3);
  REQUIRE(build_system(systems.kinds[0], {}).gpus.size() == 3);
  REQUIRE(build_system(systems.kinds[0], {}).nets.size() == 8);
}

TEST_CASE("shipped clusters have graphs", "[nccl]") {
  const std::vector<std::string> clusters{
      "dgx-1",        "dgx-2",   "dgx-a100",    "dgx-h100",    "hgx-b200",
      "aws-p5",       "aws-p4d", "gcp-a3-high", "gcp-a3-mega", "azure-nd-a100-v4",
      "rtx4090-pcie", "alps",    "polaris",     "gb200-nvl72", "l40s-pcie"};
  for (const std::string& name : clusters) {
    INFO(name);
    const Cluster cluster = shipped_cluster(name);
    const ClusterSystems systems = import_systems(cluster, shipped_catalogue());
    const SearchOptions options{.multi_node = systems.nodes.size() > 1};
    for (const std::vector<NcclSystem>& kind : systems.kinds) {
      for (const MachinePart& part : make_machines(kind, options)) {
        const GraphSet graphs = search_graphs(part.machine);
        // Not the fallback.
        REQUIRE(graphs.ring.bw_intra > 0.1);
        REQUIRE(graphs.tree.bw_intra > 0.1);
        REQUIRE(graphs.nvls.has_value() ==
                (part.machine.system().nvswitch && part.machine.system().oldest().has_nvls));
      }
    }
  }
}

TEST_CASE("the cube mesh of the DGX-1 carries six rings each way", "[nccl]") {
  const GraphSet graphs = search_graphs(systems_of("dgx-1").kinds[0], {});
  // 6 links of 20 GB/s, each ring one of them.
  REQUIRE(graphs.ring.channel_count == 6);
  REQUIRE(graphs.ring.bw_intra == 20.0);
  REQUIRE(graphs.ring.type_intra == PathType::Nvl);
}

TEST_CASE("two ports of one adapter are one NIC unless told otherwise", "[nccl]") {
  const std::vector<NcclSystem> kind = systems_of("alibaba-hpn").kinds[0];
  REQUIRE(search_graphs(kind, {.multi_node = true}).ring.channel_count == 8);
  REQUIRE(search_graphs(kind, {.multi_node = true, .merge_ports = false}).ring.channel_count == 16);
}

TEST_CASE("NICs that the plugin groups are one, with the speed of all", "[nccl]") {
  const std::vector<NcclSystem> kind = systems_of("aws-p5").kinds[0];
  const System system = build_system(kind, {});
  REQUIRE(system.nets.size() == 8);
  for (int i = 0; i < 8; ++i) {
    REQUIRE(system.nets[static_cast<std::size_t>(i)].dev == i);
    REQUIRE(system.nets[static_cast<std::size_t>(i)].bandwidth == 50.0F);
  }
  // As other servers with a NIC of 400 Gb/s for each GPU.
  const GraphSet graphs = search_graphs(kind, {.multi_node = true});
  const GraphSet others = search_graphs(systems_of("dgx-h100").kinds[0], {.multi_node = true});
  REQUIRE(graphs.ring.channel_count == others.ring.channel_count);
  REQUIRE(graphs.ring.bw_inter == others.ring.bw_inter);
}

TEST_CASE("what is not NVIDIA's is refused", "[nccl]") {
  REQUIRE_THROWS_AS(search_graphs(systems_of("mi300x").kinds[0], {}), ConfigError);
  REQUIRE_THROWS_AS(search_graphs(systems_of("ascend-910b").kinds[0], {}), ConfigError);
}

}  // namespace
}  // namespace trainyard::nccl
