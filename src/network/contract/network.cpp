// SPDX-License-Identifier: Apache-2.0
#include "network/contract/network.h"

#include <spdlog/fmt/fmt.h>

#include <array>

#include "sim/config_error.h"

namespace trainyard {

std::string_view to_string(Fidelity fidelity) {
  constexpr std::array<std::string_view, 3> kNames{"analytical", "flow", "packet"};
  return kNames.at(static_cast<std::size_t>(fidelity));
}

std::vector<LinkUse> use_of(std::span<const Bytes> bytes) {
  std::vector<LinkUse> use;
  for (std::uint32_t link = 0; link < bytes.size(); ++link) {
    if (bytes[link] > Bytes(0)) {
      use.push_back({.link = LinkId(link), .bytes = bytes[link]});
    }
  }
  return use;
}

void route_connection(Routing& routing, const ConnectionSpec& spec, std::uint32_t number,
                      std::vector<LinkId>& path) {
  if (!routing.route(spec.source, spec.target, spec.flow_label, path, number, spec.nic_turns)) {
    throw_unreachable(routing.topology(), spec.source, spec.target);
  }
}

void throw_unreachable(const Topology& topology, NodeId source, NodeId target) {
  throw ConfigError(fmt::format("no path leads from {} to {}: the cluster does not connect them",
                                topology.node(source).name, topology.node(target).name));
}

}  // namespace trainyard
