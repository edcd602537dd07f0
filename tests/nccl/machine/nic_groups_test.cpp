// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/machine/nic_groups.h"

#include <utility>
#include <vector>

#include "support/built_clusters.h"
#include "topology/exchange/server_export.h"

namespace trainyard::nccl {
namespace {

using Groups = std::vector<std::vector<int>>;

OutlineBranch gpu() {
  return {.kind = NodeKind::Gpu};
}

OutlineBranch nic(int index) {
  return {.kind = NodeKind::Nic, .index = index};
}

OutlineBranch below(std::vector<OutlineBranch> children) {
  return {.kind = NodeKind::PcieSwitch, .children = std::move(children)};
}

Groups groups_of(std::vector<OutlineBranch> socket) {
  ServerOutline server = empty_server(0, 0);
  server.sockets.push_back(std::move(socket));
  return nic_groups(server);
}

Groups shipped_groups(const char* cluster) {
  return nic_groups(server_outline(shipped_cluster(cluster).topology, ServerId(0)));
}

TEST_CASE("GPUs divide the NICs below their switch", "[nccl]") {
  REQUIRE(groups_of({below({gpu(), nic(0), nic(1), nic(2), nic(3)})}) == Groups{{0, 1, 2, 3}});
  REQUIRE(groups_of({below({gpu(), gpu(), nic(0), nic(1), nic(2)})}) == Groups{{0, 1}, {2}});
  REQUIRE(groups_of({below({gpu(), gpu(), nic(0)})}) == Groups{{0}});
}

TEST_CASE("what has no partner below its switch looks for one further up", "[nccl]") {
  REQUIRE(groups_of({below({gpu()}), below({nic(0), nic(1)})}) == Groups{{0, 1}});
  REQUIRE(groups_of({below({gpu(), nic(0), nic(1)}), below({nic(2), nic(3)})}) ==
          Groups{{0, 1}, {2}, {3}});
  REQUIRE(groups_of({below({below({gpu()}), below({gpu(), nic(0)}), nic(1), nic(2)})}) ==
          Groups{{0}, {1, 2}});
  REQUIRE(groups_of({nic(0), nic(1)}) == Groups{{0}, {1}});
}

TEST_CASE("servers of AWS have a device of 400 Gb/s for each GPU that has NICs of its own",
          "[nccl]") {
  const Groups p5 = shipped_groups("aws-p5");
  REQUIRE(p5.size() == 8);
  REQUIRE(p5[1] == std::vector<int>{4, 5, 6, 7});
  REQUIRE(shipped_groups("aws-p4d") == Groups{{0}, {1}, {2}, {3}});
  const Groups p5en = shipped_groups("aws-p5en");
  REQUIRE(p5en.size() == 8);
  REQUIRE(p5en[7] == std::vector<int>{14, 15});
  REQUIRE(shipped_groups("aws-p6-b200").size() == 8);
}

}  // namespace
}  // namespace trainyard::nccl
