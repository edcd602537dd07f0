// SPDX-License-Identifier: Apache-2.0
#include "topology/graph/topology_edits.h"

#include <cstdint>
#include <utility>

namespace trainyard {

Topology edited(const Topology& topology, const TopologyEdits& edits) {
  TopologyBuilder builder;
  builder.set_parts(topology.parts());
  for (std::uint32_t server = 0; server < topology.server_count(); ++server) {
    builder.add_server(topology.server(ServerId(server)));
  }
  for (std::uint32_t index = 0; index < topology.node_count(); ++index) {
    Node node = topology.node(NodeId(index));
    if (edits.node) {
      edits.node(NodeId(index), node);
    }
    builder.add_node(std::move(node));
  }
  for (std::uint32_t index = 0; index < topology.link_count(); ++index) {
    Link link = topology.link(LinkId(index));
    if (edits.link) {
      edits.link(LinkId(index), link.spec);
    }
    builder.add_link(link.source, link.target, link.spec);
  }
  return std::move(builder).build();
}

}  // namespace trainyard
