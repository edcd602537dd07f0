// SPDX-License-Identifier: Apache-2.0
// The links between GPUs by formula.
#include "support/catch.h"

#include "topology/server/server_keys.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

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

int ports_used(const Topology& topology, NodeId node) {
  int lanes = 0;
  for (const LinkId link : topology.links_from(node)) {
    lanes += topology.link(link).spec.lanes;
  }
  return lanes;
}

TEST_CASE("pairs of GPUs are joined as the file says") {
  const BuiltServer box = build_server(
      "template: links\ngpu: A100-PCIe-80GB\ngpus: 4\ngpu_links: [[0, 1, 12], [3, 2, 12]]\n");
  const auto lanes = [&](std::size_t a, std::size_t b) {
    const Link* link = find_link(box.topology, box.nodes.gpus[a], box.nodes.gpus[b]);
    return link == nullptr || link->spec.kind != LinkKind::NvLink ? 0 : link->spec.lanes;
  };
  REQUIRE(lanes(0, 1) == 12);
  REQUIRE(lanes(2, 3) == 12);
  REQUIRE(lanes(3, 2) == 12);
  REQUIRE(lanes(0, 2) == 0);
  // Polaris: four links between each pair of four A100, which is the full mesh.
  const std::string polaris =
      "gpu: A100-SXM-40GB\ngpus: 4\ngpu_links: [[0, 1, 4], [0, 2, 4], [0, 3, 4], [1, 2, 4], "
      "[1, 3, 4], [2, 3, 4]]\n";
  const ServerSpec pairs = read_server_text("template: links\n" + polaris);
  const ServerSpec mesh = read_server_text("template: full-mesh\ngpu: A100-SXM-40GB\ngpus: 4\n");
  REQUIRE(pairs.gpu_links.size() == mesh.gpu_links.size());
  for (std::size_t pair = 0; pair < mesh.gpu_links.size(); ++pair) {
    REQUIRE(pairs.gpu_links[pair].first == mesh.gpu_links[pair].first);
    REQUIRE(pairs.gpu_links[pair].second == mesh.gpu_links[pair].second);
    REQUIRE(pairs.gpu_links[pair].links == mesh.gpu_links[pair].links);
  }
}

TEST_CASE("a switch of known chips has their ports") {
  struct Row {
    const char* gpu;
    const char* part;
    int gpus;
    int links;
    int chips;
    int ports;
  };
  const Row rows[] = {{"A100-SXM-80GB", "NVSwitch2", 8, 12, 6, 36},
                      {"H100-SXM", "NVSwitch3", 8, 18, 4, 64},
                      {"B200", "NVSwitch4", 8, 18, 2, 72}};
  for (const Row& row : rows) {
    INFO(row.part);
    const BuiltServer box = build_server(std::string("template: nvswitch\ngpu: ") + row.gpu +
                                         "\ngpus: 8\nnvswitch: " + row.part +
                                         "\nnvswitch_chips: " + std::to_string(row.chips) + "\n");
    const NodeId node = *box.topology.find("server0/nvswitch");
    REQUIRE(box.topology.node(node).ports == row.chips * row.ports);
    REQUIRE(ports_used(box.topology, node) == row.gpus * row.links);
  }
  const BuiltServer unknown = build_server(even_server("nvswitch", "H100-SXM", 8, 0, 0, 1));
  REQUIRE(unknown.topology.node(*unknown.topology.find("server0/nvswitch")).ports == 0);
}

TEST_CASE("two boards have half of the GPUs each and as many links between them as those") {
  const std::string dgx2 =
      "template: nvswitch\ngpu: V100-SXM2-32GB\ngpus: 16\nnvswitch: NVSwitch1\n"
      "nvswitch_boards: 2\nnvswitch_chips: 6\n";
  const BuiltServer box = build_server(dgx2);
  const NodeId first = *box.topology.find("server0/nvswitch0");
  const NodeId second = *box.topology.find("server0/nvswitch1");
  REQUIRE(find_link(box.topology, box.nodes.gpus[7], first) != nullptr);
  REQUIRE(find_link(box.topology, box.nodes.gpus[8], second) != nullptr);
  REQUIRE(find_link(box.topology, box.nodes.gpus[8], first) == nullptr);
  const Link* trunk = find_link(box.topology, first, second);
  REQUIRE(trunk->spec.lanes == 8 * 6);
  REQUIRE(trunk->spec.bandwidth == gigabytes_per_second(8 * 6 * 21));  // 25 x 0.84.
  // 16 of the 18 ports of each chip: 8 GPUs and 8 of the trunk.
  REQUIRE(ports_used(box.topology, first) == 6 * 16);
  REQUIRE(box.topology.node(first).ports == 6 * 18);
  const BuiltServer half = build_server(dgx2 + "nvswitch_trunk_links: 24\n");
  REQUIRE(find_link(half.topology, *half.topology.find("server0/nvswitch0"),
                    *half.topology.find("server0/nvswitch1"))
              ->spec.lanes == 24);
}

TEST_CASE("the switch of a domain joins the GPUs of several servers and belongs to none") {
  const ServerSpec spec = read_server_text(
      "template: nvswitch\ngpu: GB200\ngpus: 4\ncpu: Grace\nsockets: 2\n"
      "nvlink_domain: 18\nnvswitch: NVSwitch4\nnvswitch_chips: 18\n");
  TopologyBuilder builder;
  std::vector<ServerNodes> servers;
  for (int server = 0; server < 18; ++server) {
    servers.push_back(add_server(builder, spec));
  }
  add_nvlink_domain(builder, spec, 0, servers);
  const Topology topology = std::move(builder).build();
  const NodeId node = *topology.find("domain0/nvswitch");
  REQUIRE(!topology.node(node).server);
  // Every port of the 18 chips is used: 72 GPUs with one link to each.
  REQUIRE(topology.node(node).ports == 18 * 72);
  REQUIRE(ports_used(topology, node) == 72 * 18);
  REQUIRE(topology.links_from(node).size() == 72);
  REQUIRE(!topology.find("server0/nvswitch"));
}

TEST_CASE("each mistake in the links between GPUs is one line that says what to do") {
  const auto links = [](const std::string& list, const std::string& more = "") {
    return server_error("template: links\ngpu: A100-PCIe-80GB\ngpus: 4\ngpu_links: " + list + "\n" +
                        more);
  };
  REQUIRE(links("[[0, 1, 12]]") == "no error");
  REQUIRE(server_error("template: links\ngpu: A100-PCIe-80GB\ngpus: 4\n") ==
          "server.yaml:1:1: missing key \"gpu_links\"");
  REQUIRE(links("[[0, 1]]") ==
          "server.yaml:4:13: gpu_links[0]: expected [GPU, GPU, number of links], found 2 values");
  REQUIRE(links("[[0, 4, 1]]") ==
          "server.yaml:4:17: gpu_links[0][1]: expected a whole number from 0 to 3, found \"4\"");
  REQUIRE(links("[[1, 1, 1]]") ==
          "server.yaml:4:13: gpu_links[0]: expected two different GPUs, found 1 twice");
  REQUIRE(links("[[0, 1, 13]]") ==
          "server.yaml:4:20: gpu_links[0][2]: expected a whole number from 1 to 12, found \"13\"");
  REQUIRE(links("[[0, 1, 4], [1, 0, 4]]") ==
          "server.yaml:4:24: gpu_links[1]: expected each pair of GPUs once, found 0 and 1 again");
  REQUIRE(links("[[0, 1, 8], [1, 2, 5]]") ==
          "server.yaml:4:24: gpu_links[1]: GPU 1 would have 13 links, and A100-PCIe-80GB has 12");
  REQUIRE(links("[[0, 1, 12]]", "nvswitch: NVSwitch2\n") ==
          "server.yaml:5:1: unknown key \"nvswitch\"");

  const auto nvswitch = [](const std::string& more) {
    return server_error("template: nvswitch\ngpu: H100-SXM\ngpus: 8\n" + more);
  };
  REQUIRE(nvswitch("gpu_links: [[0, 1, 1]]\n")
              .starts_with("server.yaml:4:1: unknown key \"gpu_links\""));
  REQUIRE(nvswitch("nvswitch: NVSwitch5\nnvswitch_chips: 4\n") ==
          "server.yaml:4:11: nvswitch: expected the name of an NVSwitch in the catalogue, found "
          "\"NVSwitch5\"; did you mean \"NVSwitch1\"?");
  REQUIRE(nvswitch("nvswitch: NVSwitch3\n") == "server.yaml:1:1: missing key \"nvswitch_chips\"");
  REQUIRE(nvswitch("nvswitch_chips: 4\n") ==
          "server.yaml:4:17: nvswitch_chips: nvswitch_chips needs nvswitch, the name of the part");
  REQUIRE(nvswitch("nvswitch: NVSwitch2\nnvswitch_chips: 4\n") ==
          "server.yaml:4:11: nvswitch: NVSwitch2 has ports of NVLink3, and H100-SXM has NVLink4");
  REQUIRE(
      nvswitch("nvswitch: NVSwitch3\nnvswitch_chips: 2\n") ==
      "server.yaml:5:17: nvswitch_chips: 2 NVSwitch3 have 128 ports, and the links of GPUs take "
      "144");
  REQUIRE(nvswitch("nvswitch: NVSwitch3\nnvswitch_chips: 2\nnvswitch_boards: 2\n") ==
          "server.yaml:5:17: nvswitch_chips: 2 NVSwitch3 have 128 ports, and the links of GPUs and "
          "trunk take 144");
  REQUIRE(nvswitch("nvswitch_boards: 3\n") ==
          "server.yaml:4:18: nvswitch_boards: expected a whole number from 1 to 2, found \"3\"");
  REQUIRE(server_error("template: nvswitch\ngpu: H100-SXM\ngpus: 7\nnvswitch_boards: 2\n") ==
          "server.yaml:4:18: nvswitch_boards: 7 GPUs cannot be dealt evenly to 2 boards");
  REQUIRE(nvswitch("nvswitch_boards: 2\nnvlink_domain: 4\n") ==
          "server.yaml:4:18: nvswitch_boards: the switches of an nvlink_domain have no boards");
  REQUIRE(nvswitch("nvlink_domain: 1\n") ==
          "server.yaml:4:16: nvlink_domain: expected a whole number from 2 to 4096, found \"1\"");
  REQUIRE(nvswitch("nvswitch_trunk_links: 8\n")
              .starts_with("server.yaml:4:1: unknown key \"nvswitch_trunk_links\""));
}

}  // namespace
}  // namespace trainyard
