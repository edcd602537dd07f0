// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/doctor/doctor_machine.h"

#include <filesystem>
#include <string>

#include "support/paths.h"
#include "support/shipped.h"
#include "topology/cluster/reach.h"
#include "topology/routing/routing.h"

namespace trainyard {
namespace {

Cluster shipped_cluster(const std::string& name, int nodes,
                        std::vector<std::string> settings = {}) {
  return load_cluster(source_dir() / "configs/clusters" / (name + ".yaml"), shipped_catalogue(),
                      {.nodes = nodes, .settings = std::move(settings)});
}

NodeId node_of(const Cluster& cluster, const std::string& name) {
  const auto node = cluster.topology.find(name);
  REQUIRE(node.has_value());
  return *node;
}

// Of the first link of this kind.
LinkSpec link_at(const Cluster& cluster, NodeId node, LinkKind kind) {
  for (const LinkId id : cluster.topology.links_from(node)) {
    if (cluster.topology.link(id).spec.kind == kind) {
      return cluster.topology.link(id).spec;
    }
  }
  FAIL("no such link");
  return {};
}

}  // namespace

TEST_CASE("the NIC of a rank is its nearest, and its rail those of its like") {
  const Cluster cluster = shipped_cluster("dgx-h100", 3);
  REQUIRE(nic_of_rank(cluster, 23) == node_of(cluster, "server2/nic7"));
  const std::vector<NodeId> rail = nics_of_rail(cluster, 21);
  REQUIRE(rail == std::vector{node_of(cluster, "server0/nic5"), node_of(cluster, "server1/nic5"),
                              node_of(cluster, "server2/nic5")});
  REQUIRE_FALSE(nic_of_rank(shipped_cluster("rtx4090-pcie", 1), 0).has_value());
}

TEST_CASE("a dead NIC leaves its GPU to the others") {
  const Cluster whole = shipped_cluster("dgx-h100", 2);
  const NodeId nic = node_of(whole, "server1/nic7");
  const Cluster broken = without_nodes(whole, {nic});
  REQUIRE(broken.topology.links_from(nic).empty());
  REQUIRE(broken.topology.node_count() == whole.topology.node_count());
  REQUIRE(nic_of_rank(broken, 15) != nic);
  REQUIRE_FALSE(describe_unreachable(broken).has_value());
}

TEST_CASE("half of the lanes is half of the rate, at one device or in all servers") {
  const Cluster whole = shipped_cluster("dgx-h100", 2);
  const NodeId nic = node_of(whole, "server1/nic7");
  const LinkSpec before = link_at(whole, nic, LinkKind::Pcie);
  const Cluster broken = with_half_lanes(whole, nic, LinkKind::Pcie);
  const LinkSpec after = link_at(broken, nic, LinkKind::Pcie);
  REQUIRE(after.lanes == before.lanes / 2);
  REQUIRE(after.bandwidth == before.bandwidth.scaled(0.5));
  const LinkSpec other = link_at(broken, node_of(whole, "server1/nic6"), LinkKind::Pcie);
  REQUIRE(other.bandwidth == before.bandwidth);
  const LinkSpec cable = link_at(broken, nic, LinkKind::Network);
  REQUIRE(cable.bandwidth == link_at(whole, nic, LinkKind::Network).bandwidth);
  const Cluster old = with_slower_pcie(whole);
  REQUIRE(link_at(old, node_of(whole, "server0/gpu3"), LinkKind::Pcie).lanes == 8);
}

TEST_CASE("a NIC at the other CPU is a system away from its GPU") {
  const Cluster whole = shipped_cluster("dgx-h100", 2);
  const NodeId nic = node_of(whole, "server1/nic0");
  const NodeId gpu = node_of(whole, "server1/gpu0");
  Routing before(whole.topology, whole.routing);
  REQUIRE(before.distance(gpu, nic) <= Distance::Pxb);
  const auto moved = with_nic_at_other_cpu(whole, nic);
  REQUIRE(moved.has_value());
  Routing after(moved->topology, moved->routing);
  REQUIRE(after.distance(gpu, nic) == Distance::Sys);
  const Cluster one_cpu = shipped_cluster("h100-1gpu-400g", 2);
  REQUIRE_FALSE(with_nic_at_other_cpu(one_cpu, *nic_of_rank(one_cpu, 0)).has_value());
}

TEST_CASE("a slower fabric leaves cables to NICs as they are") {
  const Cluster whole = shipped_cluster("hgx-h100-clos", 4, {"fabric.nodes_per_leaf=2"});
  REQUIRE(has_links_between_switches(whole));
  const Cluster slow = with_slower_fabric(whole, 0.25);
  int slower = 0;
  for (std::uint32_t id = 0; id < whole.topology.link_count(); ++id) {
    const Link& link = whole.topology.link(LinkId(id));
    const Bandwidth rate = slow.topology.link(LinkId(id)).spec.bandwidth;
    const bool inner =
        !whole.topology.node(link.source).server && !whole.topology.node(link.target).server;
    slower += inner ? 1 : 0;
    REQUIRE(rate == (inner ? link.spec.bandwidth.scaled(0.25) : link.spec.bandwidth));
  }
  REQUIRE(slower > 0);
  REQUIRE_FALSE(has_links_between_switches(shipped_cluster("l40s-2-roce", 2)));
}

TEST_CASE("without peer access GPUs meet in host memory") {
  const Cluster whole = shipped_cluster("dgx-a100", 1);
  const Cluster staged = without_peer_access(whole);
  for (std::uint32_t id = 0; id < staged.topology.link_count(); ++id) {
    REQUIRE(staged.topology.link(LinkId(id)).spec.kind != LinkKind::NvLink);
  }
  REQUIRE(staged.topology.server(ServerId(0)).peer_access == Distance::None);
  REQUIRE_FALSE(describe_unreachable(staged).has_value());
}

}  // namespace trainyard
