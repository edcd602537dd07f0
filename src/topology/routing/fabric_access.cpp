// SPDX-License-Identifier: Apache-2.0
#include "topology/routing/fabric_access.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/check.h"

namespace trainyard {
namespace {

constexpr LinkId kNone(std::numeric_limits<std::uint32_t>::max());

}  // namespace

FabricAccess::FabricAccess(const Topology& topology, const FabricShape& shape)
    : topology_(topology),
      first_(shape.first_switch.value()),
      switches_(shape.switches),
      ups_(topology.node_count(), kNone),
      downs_(topology.node_count(), kNone) {
  std::vector<std::pair<std::uint32_t, LinkId>> ups;
  std::vector<std::pair<std::uint32_t, LinkId>> downs;
  std::vector<std::pair<std::uint32_t, NodeId>> order;
  for (std::uint32_t index = 0; index < topology.link_count(); ++index) {
    const LinkId id(index);
    const Link& link = topology.link(id);
    if (link.spec.kind != LinkKind::Network) {
      continue;
    }
    const auto source = number(link.source);
    const auto target = number(link.target);
    if (source && target) {
      trunks_.push_back(id);
    } else if (target) {
      CHECK(ups_[link.source.value()] == kNone, "an endpoint has two links into its fabric");
      ups_[link.source.value()] = id;
      ups.emplace_back(*target, id);
      order.emplace_back(*target, link.source);
    } else if (source) {
      CHECK(downs_[link.target.value()] == kNone, "an endpoint has two links from its fabric");
      downs_[link.target.value()] = id;
      downs.emplace_back(*source, id);
      order.emplace_back(*source, link.target);
    }
  }
  ups_at_ = Lists<LinkId>(switches_, ups);
  downs_at_ = Lists<LinkId>(switches_, downs);
  std::sort(order.begin(), order.end());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  for (const auto& [at, node] : order) {
    endpoints_.push_back(node);
  }
}

std::optional<std::uint32_t> FabricAccess::number(NodeId node) const {
  if (node.value() < first_ || node.value() >= first_ + switches_) {
    return std::nullopt;
  }
  return node.value() - first_;
}

std::optional<FabricAccess::Way> FabricAccess::way(const std::vector<LinkId>& links,
                                                   NodeId node) const {
  if (const auto at = number(node)) {
    return Way{*at, std::nullopt};
  }
  const LinkId id = links[node.value()];
  if (id == kNone) {
    return std::nullopt;
  }
  const Link& link = topology_.link(id);
  return Way{*number(link.source == node ? link.target : link.source), id};
}

AccessRouter::AccessRouter(const Topology& topology, const RoutingOptions& options)
    : topology_(topology),
      access_(topology, options.fabric),
      channels_(options.fabric.virtual_channels) {}

bool AccessRouter::append_route(NodeId source, NodeId target, const Chooser& chooser,
                                std::vector<LinkId>& path) {
  const auto up = access_.up(source);
  const auto down = access_.down(target);
  if (!up || !down) {
    return false;
  }
  const std::size_t before = path.size();
  if (up->link) {
    path.push_back(*up->link);
  }
  if (!append_between(up->at, down->at, chooser, path)) {
    path.resize(before);
    return false;
  }
  if (down->link) {
    path.push_back(*down->link);
  }
  return true;
}

void AccessRouter::mark_used(std::vector<bool>& used) {
  for (std::uint32_t link = 0; link < topology_.link_count(); ++link) {
    used[link] = used[link] || topology_.link(LinkId(link)).spec.kind == LinkKind::Network;
  }
}

}  // namespace trainyard
