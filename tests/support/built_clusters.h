// SPDX-License-Identifier: Apache-2.0
// Clusters for tests: from text, from the shipped files, and from a topology built by hand.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/fabrics.h"
#include "support/paths.h"
#include "support/shipped.h"
#include "topology/cluster/cluster.h"
#include "topology/routing/grid_router.h"

namespace trainyard {

inline const std::filesystem::path kConfigsFolder = source_dir() / "configs";

[[nodiscard]] inline Cluster cluster_of(const std::string& text,
                                        const ClusterOverrides& overrides = {}) {
  ConfigDocument document = ConfigDocument::parse(text, "my.yaml");
  return build_cluster(document, shipped_catalogue(), overrides);
}

[[nodiscard]] inline Cluster shipped_cluster(const std::string& name,
                                             const ClusterOverrides& overrides = {}) {
  return load_cluster(kConfigsFolder / "clusters" / (name + ".yaml"), shipped_catalogue(),
                      overrides);
}

// Each host is a server with one GPU.
[[nodiscard]] inline Cluster cluster_of(TestFabric fabric) {
  const auto hosts = static_cast<int>(fabric.hosts.size());
  return {.name = "test",
          .topology = std::move(fabric.topology),
          .routing = {},
          .nodes = hosts,
          .gpus_per_node = 1,
          .server_gpus = std::vector<int>(fabric.hosts.size(), 1),
          .gpus = std::move(fabric.hosts),
          .nics_per_node = 0,
          .estimates = {},
          .warnings = {}};
}

// A ring or grid of switches with one host each; the first dimension varies fastest.
[[nodiscard]] inline Cluster torus(const std::vector<int>& dimensions, const LinkSpec& host_link,
                                   const LinkSpec& trunk) {
  int count = 1;
  for (const int size : dimensions) {
    count *= size;
  }
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  for (int index = 0; index < count; ++index) {
    (void)add_host(builder, hosts);
  }
  std::vector<NodeId> switches;
  for (int index = 0; index < count; ++index) {
    switches.push_back(add_switch(builder, "switch " + std::to_string(index)));
    builder.add_duplex_link(hosts[static_cast<std::size_t>(index)], switches.back(), host_link);
  }
  int stride = 1;
  for (const int size : dimensions) {
    for (int index = 0; index < count; ++index) {
      const int place = index / stride % size;
      const int next = index + ((place + 1) % size - place) * stride;
      builder.add_duplex_link(switches[static_cast<std::size_t>(index)],
                              switches[static_cast<std::size_t>(next)], trunk);
    }
    stride *= size;
  }
  const auto size = static_cast<std::uint32_t>(count);
  Cluster cluster =
      cluster_of(TestFabric{.topology = std::move(builder).build(), .hosts = std::move(hosts)});
  cluster.routing.fabric = {.router = make_router<GridRouter>,
                            .first_switch = switches.front(),
                            .switches = size,
                            .dimensions = dimensions,
                            .wraps = std::vector<bool>(dimensions.size(), true)};
  return cluster;
}

}  // namespace trainyard
