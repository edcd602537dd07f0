// SPDX-License-Identifier: Apache-2.0
#include "topology/graph/path.h"

#include <algorithm>

#include "sim/check.h"

namespace trainyard {

Distance path_distance(const Topology& topology, std::span<const LinkId> path) {
  int switches = 0;
  bool passes_host = false;
  for (std::size_t hop = 0; hop < path.size(); ++hop) {
    const Link& link = topology.link(path[hop]);
    if (link.spec.kind == LinkKind::Socket) {
      return Distance::Sys;
    }
    if (hop + 1 == path.size()) {
      break;
    }
    const NodeKind passed = topology.node(link.target).kind;
    const LinkKind next = topology.link(path[hop + 1]).spec.kind;
    switches += passed == NodeKind::PcieSwitch ? 1 : 0;
    const bool is_host = passed == NodeKind::Cpu || passed == NodeKind::RootComplex;
    passes_host =
        passes_host || (is_host && link.spec.kind != LinkKind::C2c && next != LinkKind::C2c);
  }
  if (passes_host) {
    return Distance::Phb;
  }
  if (switches == 0) {
    return Distance::None;
  }
  return switches == 1 ? Distance::Pix : Distance::Pxb;
}

bool is_staged(const Topology& topology, std::span<const LinkId> path) {
  return std::ranges::any_of(path.first(path.empty() ? 0 : path.size() - 1), [&](LinkId link) {
    return topology.node(topology.link(link).target).kind == NodeKind::Memory;
  });
}

SimTime path_latency(const Topology& topology, const std::vector<LinkId>& path) {
  SimTime sum;
  for (std::size_t hop = 0; hop < path.size(); ++hop) {
    const Link& link = topology.link(path[hop]);
    sum += link.spec.latency;
    const Node& target = topology.node(link.target);
    const bool is_switch = target.kind == NodeKind::NvSwitch || target.kind == NodeKind::Switch;
    if (hop + 1 < path.size() || is_switch) {
      sum += target.latency;
    }
  }
  return sum;
}

Bandwidth path_bandwidth(const Topology& topology, const std::vector<LinkId>& path) {
  CHECK(!path.empty(), "an empty path has no bandwidth");
  Bandwidth min = kMaxBandwidth;
  for (const LinkId link : path) {
    min = std::min(min, topology.link(link).spec.bandwidth);
  }
  return std::min(min, staging_bandwidth(topology, path).value_or(min));
}

std::optional<Bandwidth> staging_bandwidth(const Topology& topology,
                                           const std::vector<LinkId>& path) {
  if (!is_staged(topology, path)) {
    return std::nullopt;
  }
  Bandwidth min = kMaxBandwidth;
  double share = 1.0;
  for (const LinkId id : path) {
    const Link& link = topology.link(id);
    if (link.spec.kind != LinkKind::Network) {
      min = std::min(min, link.spec.bandwidth);
    }
    if (const auto server = topology.node(link.target).server) {
      share = std::min(share, topology.server(*server).staging_share);
    }
  }
  return min.scaled(share);
}

}  // namespace trainyard
