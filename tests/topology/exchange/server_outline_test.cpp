// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "support/shipped.h"
#include "topology/exchange/server_outline.h"

#include <string>
#include <vector>

namespace trainyard {
namespace {

OutlineBranch gpu(int index) {
  return {.kind = NodeKind::Gpu, .index = index};
}
OutlineBranch nic(int index, std::string part = "ConnectX-7") {
  return {.kind = NodeKind::Nic, .index = index, .part = std::move(part)};
}
OutlineBranch below(NodeKind kind, std::vector<OutlineBranch> children) {
  return {.kind = kind, .children = std::move(children)};
}
OutlineBranch pcie_switch(std::vector<OutlineBranch> children) {
  return below(NodeKind::PcieSwitch, std::move(children));
}

SmiDistance between(const std::vector<std::vector<OutlineBranch>>& sockets) {
  ServerOutline tree = empty_server(1, 1);
  tree.sockets = sockets;
  return distances(tree)[0][1].distance;
}

}  // namespace

TEST_CASE("distances are what nvidia-smi defines") {
  REQUIRE(between({{pcie_switch({gpu(0), nic(0)})}}) == SmiDistance::Pix);
  // Several switches: one below the other, or two below a third.
  REQUIRE(between({{pcie_switch({pcie_switch({gpu(0)}), nic(0)})}}) == SmiDistance::Pxb);
  REQUIRE(between({{pcie_switch({pcie_switch({gpu(0)}), pcie_switch({nic(0)})})}}) ==
          SmiDistance::Pxb);
  // Through the host bridge of the CPU, whatever the number of switches.
  REQUIRE(between({{gpu(0), nic(0)}}) == SmiDistance::Phb);
  REQUIRE(between({{pcie_switch({gpu(0)}), pcie_switch({nic(0)})}}) == SmiDistance::Phb);
  REQUIRE(between({{below(NodeKind::RootComplex, {gpu(0), nic(0)})}}) == SmiDistance::Phb);
  // Through two of them.
  REQUIRE(between({{below(NodeKind::RootComplex, {gpu(0)}),
                    below(NodeKind::RootComplex, {nic(0)})}}) == SmiDistance::Node);
  REQUIRE(between({{below(NodeKind::RootComplex, {pcie_switch({gpu(0)})}), nic(0)}}) ==
          SmiDistance::Node);
  REQUIRE(between({{gpu(0)}, {nic(0)}}) == SmiDistance::Sys);
}

TEST_CASE("NVLinks come before PCIe: those of the pair, or the fewer into NVSwitches") {
  ServerOutline tree = empty_server(3, 0);
  tree.sockets = {{gpu(0), gpu(1), gpu(2)}};
  tree.gpu_links[0][1] = tree.gpu_links[1][0] = 2;
  REQUIRE(distances(tree)[0][0] == SmiCell{});
  REQUIRE(distances(tree)[0][1] == SmiCell{SmiDistance::NvLink, 2});
  REQUIRE(distances(tree)[1][2] == SmiCell{SmiDistance::Phb});
  tree.switch_links = {18, 18, 12};
  REQUIRE(distances(tree)[1][2] == SmiCell{SmiDistance::NvLink, 12});
}

TEST_CASE("devices are numbered in the order of the tree, which is that of the lowest GPU") {
  ServerOutline tree = empty_server(4, 2);
  tree.sockets = {{pcie_switch({nic(1), gpu(3)}), nic(0)}, {gpu(2), pcie_switch({gpu(1), gpu(0)})}};
  tree.gpu_links[0][3] = tree.gpu_links[3][0] = 5;
  tree.switch_links = {10, 11, 12, 13};
  const FormerIndices former = put_in_order(tree);
  REQUIRE(former.gpus == std::vector<int>{0, 1, 2, 3});
  REQUIRE(former.nics == std::vector<int>{1, 0});
  REQUIRE(tree.sockets ==
          std::vector<std::vector<OutlineBranch>>{{pcie_switch({gpu(0), gpu(1)}), gpu(2)},
                                                  {pcie_switch({gpu(3), nic(0)}), nic(1)}});
  REQUIRE(tree.gpu_links[0][3] == 5);
  REQUIRE(tree.switch_links == std::vector<int>{10, 11, 12, 13});
}

TEST_CASE("links follow GPUs that get another number") {
  ServerOutline tree = empty_server(4, 0);
  tree.sockets = {{pcie_switch({gpu(0), gpu(2)})}, {pcie_switch({gpu(1), gpu(3)})}};
  tree.gpu_links[0][2] = tree.gpu_links[2][0] = 7;
  tree.switch_links = {0, 1, 2, 3};
  REQUIRE(put_in_order(tree).gpus == std::vector<int>{0, 2, 1, 3});
  REQUIRE(tree.gpu_links[0][1] == 7);
  REQUIRE(tree.gpu_links[1][0] == 7);
  REQUIRE(tree.gpu_links[0][2] == 0);
  REQUIRE(tree.switch_links == std::vector<int>{0, 2, 1, 3});
}

TEST_CASE("a tree is written as a cluster file, switches that are alike once") {
  ServerOutline tree = empty_server(4, 4);
  tree.gpu = "H100-SXM";
  tree.nic = "ConnectX-7";
  tree.cpu = "EPYC-Milan";
  OutlineBranch narrow = pcie_switch({gpu(2), nic(2)});
  narrow.link = "PCIe4";
  narrow.lanes = 8;
  OutlineBranch usual = pcie_switch({gpu(0), nic(0)});
  usual.link = "PCIe5";
  usual.lanes = 16;
  tree.sockets = {
      {usual, pcie_switch({gpu(1), nic(1)}), narrow}, {gpu(3), nic(3, "BlueField-3")}, {}};
  tree.switch_links.assign(4, 18);
  REQUIRE(to_cluster_yaml(tree, shipped_catalogue(),
                          {.name = "a \"b\"", .source = "c", .remarks = {"one\ntwo"}}) ==
          "# one\\ntwo\n"
          "name: \"a \\\"b\\\"\"\n"
          "source: \"c\"\n"
          "nodes: 1\n"
          "server:\n"
          "  template: nvswitch\n"
          "  gpu: H100-SXM\n"
          "  nic: ConnectX-7\n"
          "  cpu: EPYC-Milan\n"
          "  tree:\n"
          "    - - {switch: [gpu, nic], times: 2}\n"
          "      - {switch: [gpu, nic], uplink: PCIe4, lanes: 8}\n"
          "    - - gpu\n"
          "      - {nic: BlueField-3}\n"
          "    - []\n");
}

TEST_CASE("the template of a cluster file follows from the links between GPUs") {
  const auto text_of = [](ServerOutline tree) {
    tree.gpu = "MI300X";  // Seven links.
    return to_cluster_yaml(tree, shipped_catalogue(), {.name = "a", .source = "b"});
  };
  ServerOutline tree = empty_server(3, 0);
  tree.sockets = {{gpu(0), gpu(1), gpu(2)}};
  REQUIRE(text_of(tree).find("template: pcie\n") != std::string::npos);
  for (auto& row : tree.gpu_links) {
    row.assign(3, 3);
  }
  REQUIRE(text_of(tree).find("template: full-mesh\n") != std::string::npos);
  tree.gpu_links[0][1] = tree.gpu_links[1][0] = 1;
  tree.gpu_links[1][2] = tree.gpu_links[2][1] = 0;
  const std::string links = text_of(tree);
  REQUIRE(links.find("template: links\n") != std::string::npos);
  REQUIRE(links.find("  gpu_links: [[0, 1, 1], [0, 2, 3]]\n") != std::string::npos);
}

}  // namespace trainyard
