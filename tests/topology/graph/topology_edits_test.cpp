// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/graph/topology_edits.h"

#include <cstdint>

#include "support/built_clusters.h"

namespace trainyard {

TEST_CASE("an edited topology keeps its nodes, links and numbers", "[topology-edits]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2});
  const Topology& before = cluster.topology;
  const Topology after = edited(
      before, {.link = [](LinkId /*id*/, LinkSpec& spec) { spec.latency = spec.latency * 2; },
               .node = [](NodeId /*id*/, Node& node) { node.latency = node.latency * 3; }});
  REQUIRE(after.node_count() == before.node_count());
  REQUIRE(after.link_count() == before.link_count());
  REQUIRE(after.server_count() == before.server_count());
  REQUIRE(after.parts() == before.parts());
  for (std::uint32_t index = 0; index < before.node_count(); ++index) {
    const NodeId id(index);
    REQUIRE(after.node(id).name == before.node(id).name);
    REQUIRE(after.node(id).latency == before.node(id).latency * 3);
    REQUIRE(after.links_from(id).size() == before.links_from(id).size());
  }
  for (std::uint32_t index = 0; index < before.link_count(); ++index) {
    const LinkId id(index);
    REQUIRE(after.link(id).source == before.link(id).source);
    REQUIRE(after.link(id).target == before.link(id).target);
    REQUIRE(after.link(id).spec.bandwidth == before.link(id).spec.bandwidth);
    REQUIRE(after.link(id).spec.latency == before.link(id).spec.latency * 2);
  }
}

}  // namespace trainyard
