// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/graph/path.h"

#include <string>
#include <utility>
#include <vector>

#include "topology/routing/routing.h"

namespace trainyard {
namespace {

using namespace literals;

// A row of nodes, each joined to the next by a link of the given kind.
class Row {
 public:
  Row& add(NodeKind kind) {
    nodes_.push_back(builder_.add_node({.kind = kind, .name = "node", .server = server_}));
    if (nodes_.size() > 1) {
      builder_.add_duplex_link(
          nodes_[nodes_.size() - 2], nodes_.back(),
          {.kind = next_, .bandwidth = gigabits_per_second(100), .latency = 10_ns});
    }
    return *this;
  }
  Row& by(LinkKind kind) {
    next_ = kind;
    return *this;
  }
  [[nodiscard]] std::optional<Distance> distance() const {
    TopologyBuilder builder = builder_;
    const Topology topology = std::move(builder).build();
    return Routing(topology, {}).distance(nodes_.front(), nodes_.back());
  }

 private:
  TopologyBuilder builder_;
  ServerId server_ = builder_.add_server();
  std::vector<NodeId> nodes_;
  LinkKind next_ = LinkKind::Pcie;
};

Row gpu() {
  Row row;
  row.add(NodeKind::Gpu);
  return row;
}

TEST_CASE("distances are those that nvidia-smi topo prints") {
  using enum NodeKind;
  REQUIRE(gpu().distance() == Distance::None);
  REQUIRE(gpu().by(LinkKind::NvLink).add(Gpu).distance() == Distance::None);
  REQUIRE(gpu().by(LinkKind::NvLink).add(NvSwitch).add(Gpu).distance() == Distance::None);
  REQUIRE(gpu().add(PcieSwitch).add(Nic).distance() == Distance::Pix);
  REQUIRE(gpu().add(PcieSwitch).add(PcieSwitch).add(Nic).distance() == Distance::Pxb);
  REQUIRE(gpu().add(PcieSwitch).add(PcieSwitch).add(PcieSwitch).add(Nic).distance() ==
          Distance::Pxb);
  REQUIRE(gpu().add(Cpu).add(Nic).distance() == Distance::Phb);
  REQUIRE(gpu().add(PcieSwitch).add(RootComplex).add(PcieSwitch).add(Gpu).distance() ==
          Distance::Phb);
  REQUIRE(gpu().add(PcieSwitch).add(Cpu).add(PcieSwitch).add(Gpu).distance() == Distance::Phb);
  REQUIRE(gpu().add(Cpu).by(LinkKind::Socket).add(Cpu).by(LinkKind::Pcie).add(Gpu).distance() ==
          Distance::Sys);
}

TEST_CASE("a GPU on C2C is as near to the devices of its CPU as one of them") {
  using enum NodeKind;
  const auto on_grace = [] { return std::move(gpu().by(LinkKind::C2c).add(Cpu)); };
  REQUIRE(on_grace().by(LinkKind::Pcie).add(Nic).distance() == Distance::None);
  REQUIRE(on_grace().by(LinkKind::Pcie).add(PcieSwitch).add(Nic).distance() == Distance::Pix);
  REQUIRE(on_grace().by(LinkKind::Socket).add(Cpu).by(LinkKind::Pcie).add(Nic).distance() ==
          Distance::Sys);
}

TEST_CASE("without a way inside the server there is no distance") {
  TopologyBuilder builder;
  const ServerId server = builder.add_server();
  const NodeId a = builder.add_node({.kind = NodeKind::Gpu, .name = "a", .server = server});
  const NodeId b = builder.add_node({.kind = NodeKind::Gpu, .name = "b", .server = server});
  const Topology topology = std::move(builder).build();
  REQUIRE_FALSE(Routing(topology, {}).distance(a, b).has_value());
}

}  // namespace
}  // namespace trainyard
