// SPDX-License-Identifier: Apache-2.0
// The links between GPUs by formula.
#include "support/catch.h"

#include "topology/server_scale_up.h"

#include <array>
#include <string>
#include <utility>

#include "support/described_servers.h"

namespace trainyard {
namespace {

TEST_CASE("the cube mesh of DGX-1 has the published matrix, and each GPU uses six links") {
  constexpr std::array<std::array<int, 8>, 8> published = {{{0, 1, 1, 2, 2, 0, 0, 0},
                                                            {1, 0, 2, 1, 0, 2, 0, 0},
                                                            {1, 2, 0, 2, 0, 0, 1, 0},
                                                            {2, 1, 2, 0, 0, 0, 0, 1},
                                                            {2, 0, 0, 0, 0, 1, 1, 2},
                                                            {0, 2, 0, 0, 1, 0, 2, 1},
                                                            {0, 0, 1, 0, 1, 2, 0, 2},
                                                            {0, 0, 0, 1, 2, 1, 2, 0}}};
  const BuiltServer dgx = build_server(even_server("cube-mesh", "V100-SXM2-16GB", 8, 4, 4, 2));
  for (std::size_t a = 0; a < 8; ++a) {
    int used = 0;
    for (std::size_t b = 0; b < 8; ++b) {
      const Link* link = find_link(dgx.topology, dgx.nodes.gpus[a], dgx.nodes.gpus[b]);
      const int lanes = link == nullptr ? 0 : link->spec.lanes;
      REQUIRE(lanes == published[a][b]);
      if (lanes > 0) {
        REQUIRE(link->spec.bandwidth == gigabytes_per_second(21 * lanes));  // 25 x 0.84.
      }
      used += lanes;
    }
    REQUIRE(used == 6);
  }
}

TEST_CASE("a full mesh shares the links of a GPU among its peers") {
  const BuiltServer four = build_server(even_server("full-mesh", "A100-SXM-40GB", 4, 0, 0, 1));
  const Link* pair = find_link(four.topology, four.nodes.gpus[0], four.nodes.gpus[3]);
  REQUIRE(pair->spec.lanes == 4);
  const BuiltServer amd = build_server(even_server("full-mesh", "MI300X", 8, 0, 0, 1));
  pair = find_link(amd.topology, amd.nodes.gpus[0], amd.nodes.gpus[7]);
  REQUIRE(pair->spec.kind == LinkKind::Xgmi);
  REQUIRE(pair->spec.lanes == 1);
}

TEST_CASE("GPUs behind a switch have all their links on it") {
  const BuiltServer box = build_server(even_server("nvswitch", "H100-SXM", 8, 0, 0, 1));
  const NodeId nvswitch = *box.topology.find("server0/nvswitch");
  for (const NodeId gpu : box.nodes.gpus) {
    const Link* link = find_link(box.topology, gpu, nvswitch);
    REQUIRE(link->spec.lanes == 18);
    REQUIRE(link->spec.bandwidth == gigabytes_per_second(369));  // 18 x 25 x 0.82.
  }
}

TEST_CASE("an NVSwitch is of its link's part and reduces from the fourth generation on") {
  for (const auto& [gpu, reduces] : {std::pair{"V100-SXM2-32GB", false},
                                     {"A100-SXM-40GB", false},
                                     {"H100-SXM", true},
                                     {"B200", true}}) {
    INFO(gpu);
    const BuiltServer box = build_server(even_server("nvswitch", gpu, 8, 0, 0, 1));
    const Link& link = box.topology.link(box.topology.links_from(box.nodes.gpus[0]).front());
    const Node& node = box.topology.node(link.target);
    REQUIRE(node.kind == NodeKind::NvSwitch);
    REQUIRE(node.part == link.spec.part);
    REQUIRE(node.in_network_reduction == reduces);
  }
}

TEST_CASE("GPUs of several parts need the same links") {
  const std::string tree = "template: nvswitch\ngpu: H100-SXM\ntree:\n  - [gpu, {gpu: H800-SXM}]\n";
  REQUIRE(
      server_error(tree) ==
      "server.yaml:2:6: gpu: the template nvswitch needs GPUs with the same links, and H800-SXM "
      "has other links than H100-SXM");
  const std::string same = "template: nvswitch\ngpu: H100-SXM\ntree:\n  - [gpu, {gpu: H200-SXM}]\n";
  REQUIRE(server_error(same) == "no error");
  REQUIRE(server_error("template: cube-mesh\ngpu: V100-SXM2-16GB\ntree: [[gpu, gpu]]\n") ==
          "server.yaml:3:7: tree: expected 8 GPUs for the template cube-mesh, found 2");
}

}  // namespace
}  // namespace trainyard
