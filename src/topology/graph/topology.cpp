// SPDX-License-Identifier: Apache-2.0
// The builder collects nodes and links; build() lists the links of each node.
#include "topology/graph/topology.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/check.h"

namespace trainyard {

std::string_view to_string(NodeKind kind) {
  static constexpr std::array<std::string_view, kNodeKinds> names = {
      "gpu", "nvswitch", "pcie-switch", "cpu", "nic", "switch", "memory", "root-complex"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view to_string(LinkKind kind) {
  static constexpr std::array<std::string_view, 8> names = {"nvlink", "xgmi",    "c2c",    "pcie",
                                                            "socket", "network", "memory", "hccs"};
  return names[static_cast<std::size_t>(kind)];
}

std::optional<NodeId> Topology::find(std::string_view name) const {
  const auto node = std::ranges::find(nodes_, name, &Node::name);
  if (node == nodes_.end()) {
    return std::nullopt;
  }
  return NodeId(static_cast<std::uint32_t>(node - nodes_.begin()));
}

Topology Topology::with_bandwidths(std::span<const std::pair<LinkId, Bandwidth>> bandwidths) const {
  Topology changed = *this;
  for (const auto& [link, bandwidth] : bandwidths) {
    CHECK(bandwidth > Bandwidth(), "a link has no bandwidth");
    changed.links_[link.value()].spec.bandwidth = bandwidth;
  }
  return changed;
}

NodeId TopologyBuilder::add_node(Node node) {
  CHECK(node.latency >= SimTime(), "the latency of a node is negative");
  CHECK(!node.server || node.server->value() < topology_.server_count(), "the server is unknown");
  const NodeId id(topology_.node_count());
  topology_.nodes_.push_back(std::move(node));
  return id;
}

ServerId TopologyBuilder::add_server(const ServerTraits& traits) {
  topology_.servers_.push_back(traits);
  return ServerId(topology_.server_count() - 1);
}

void TopologyBuilder::set_parts(std::vector<std::string> parts) {
  CHECK(!parts.empty() && parts[0].empty(), "the first part represents none");
  topology_.parts_ = std::move(parts);
}

LinkId TopologyBuilder::add_link(NodeId source, NodeId target, const LinkSpec& spec) {
  CHECK(source.value() < topology_.node_count(), "the source of a link is unknown");
  CHECK(target.value() < topology_.node_count(), "the target of a link is unknown");
  CHECK(source != target, "a link leads from a node to itself");
  CHECK(spec.bandwidth > Bandwidth(), "a link has no bandwidth");
  CHECK(spec.bandwidth <= kMaxBandwidth, "a link is faster than kMaxBandwidth");
  CHECK(spec.latency >= SimTime(), "the latency of a link is negative");
  CHECK(spec.lanes >= 1, "a link has no lanes");
  const LinkId id(topology_.link_count());
  topology_.links_.push_back({source, target, spec});
  return id;
}

LinkId TopologyBuilder::add_duplex_link(NodeId a, NodeId b, const LinkSpec& spec) {
  const LinkId there = add_link(a, b, spec);
  add_link(b, a, spec);
  return there;
}

Topology TopologyBuilder::build() && {
  std::vector<std::pair<std::uint32_t, LinkId>> by_source;
  by_source.reserve(topology_.links_.size());
  for (std::uint32_t link = 0; link < topology_.link_count(); ++link) {
    by_source.emplace_back(topology_.links_[link].source.value(), link);
  }
  topology_.outgoing_ = Lists<LinkId>(topology_.node_count(), by_source);
  return std::move(topology_);
}

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
    if (edits.keeps && !edits.keeps(LinkId(index))) {
      continue;
    }
    if (edits.link) {
      edits.link(LinkId(index), link.spec);
    }
    builder.add_link(link.source, link.target, link.spec);
  }
  return std::move(builder).build();
}

}  // namespace trainyard
