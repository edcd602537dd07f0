// SPDX-License-Identifier: Apache-2.0
#include "collectives/placement/rank_grid.h"

#include <algorithm>

namespace trainyard {

namespace {

// Whether the GPUs hang off the switches of a grid, not behind NICs or NVLink.
bool is_on_grid(const Cluster& cluster) {
  const FabricShape& grid = cluster.routing.fabric;
  return grid.is_grid() && std::ranges::all_of(cluster.gpus, [&](NodeId gpu) {
           return place_in_grid(cluster.topology, grid, gpu).has_value();
         });
}

RankGrid fabric_grid(const Cluster& cluster, std::string& error) {
  const FabricShape& grid = cluster.routing.fabric;
  RankGrid result{.dimensions = {}, .is_fabric = true};
  const std::size_t share = cluster.gpus.size() / grid.switches;
  if (share > 1) {
    result.dimensions.push_back(static_cast<int>(share));
  }
  std::ranges::copy_if(grid.dimensions, std::back_inserter(result.dimensions),
                       [](int length) { return length > 1; });
  for (std::size_t rank = 0; rank < cluster.gpus.size(); ++rank) {
    if (share * grid.switches != cluster.gpus.size() ||
        place_in_grid(cluster.topology, grid, cluster.gpus[rank]) !=
            static_cast<int>(rank / share)) {
      error = "the ranks do not fill the grid of the fabric";
      break;
    }
  }
  return result;
}

RankGrid server_grid(const Cluster& cluster, std::string& error) {
  const std::vector<int>& gpus = cluster.server_gpus;
  if (std::ranges::any_of(gpus, [&](int count) { return count != gpus.front(); })) {
    error = "the servers have different numbers of ranks";
  }
  RankGrid grid;
  for (const int length : {gpus.front(), static_cast<int>(gpus.size())}) {
    if (length > 1) {
      grid.dimensions.push_back(length);
    }
  }
  return grid;
}

}  // namespace

std::optional<int> place_in_grid(const Topology& topology, const FabricShape& grid, NodeId gpu) {
  std::optional<int> place;
  for (const LinkId id : topology.links_from(gpu)) {
    const Link& link = topology.link(id);
    if (link.spec.kind == LinkKind::NvLink || link.spec.kind == LinkKind::Xgmi) {
      return std::nullopt;
    }
    const bool in_grid = link.target >= grid.first_switch &&
                         link.target.value() - grid.first_switch.value() < grid.switches;
    if (!place && link.spec.kind == LinkKind::Network && in_grid) {
      place = static_cast<int>(link.target.value() - grid.first_switch.value());
    }
  }
  return place;
}

std::optional<RankGrid> rank_grid(const Cluster& cluster, std::string& error) {
  error.clear();
  RankGrid grid = is_on_grid(cluster) ? fabric_grid(cluster, error) : server_grid(cluster, error);
  return error.empty() ? std::optional(std::move(grid)) : std::nullopt;
}

}  // namespace trainyard
