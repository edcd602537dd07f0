// SPDX-License-Identifier: Apache-2.0
#include "topology/lint/staging.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "topology/graph/path.h"
#include "topology/routing/routing.h"

namespace trainyard {
namespace {

// Pairs are quadratic; servers of more GPUs are alike throughout.
constexpr std::size_t kMaxGpus = 32;

std::size_t staged_pairs(Routing& routing, std::span<const NodeId> gpus) {
  std::size_t count = 0;
  std::vector<LinkId> path;
  for (std::size_t from = 0; from < gpus.size(); ++from) {
    for (std::size_t to = from + 1; to < gpus.size(); ++to) {
      const bool has_way = routing.route(gpus[from], gpus[to], 0, path);
      count += has_way && is_staged(routing.topology(), path) ? 1 : 0;
    }
  }
  return count;
}

std::size_t staged_to_nics(Routing& routing, std::span<const NodeId> gpus, Distance allowed) {
  return static_cast<std::size_t>(std::ranges::count_if(gpus, [&](NodeId gpu) {
    const std::vector<NodeId> nics = routing.nics(gpu);
    return std::ranges::any_of(nics, [&](NodeId nic) {
      return nic != gpu && routing.distance(gpu, nic).value_or(Distance::None) > allowed;
    });
  }));
}

// Empty where nothing is staged.
std::string note_of(const std::string& server, std::size_t gpus, std::size_t pairs,
                    std::size_t to_nics) {
  std::vector<std::string> what;
  if (pairs > 0) {
    what.push_back(fmt::format("{} of {} pairs of its GPUs (beyond peer_access)", pairs,
                               gpus * (gpus - 1) / 2));
  }
  if (to_nics > 0) {
    what.push_back(
        fmt::format("{} of {} GPUs on the way to the NIC (beyond gpudirect)", to_nics, gpus));
  }
  return what.empty() ? ""
                      : fmt::format(
                            "staged through host memory in {} and servers like it: {} "
                            "(docs/models/topology.md)",
                            server, fmt::join(what, ", "));
}

}  // namespace

std::vector<std::string> staging_notes(const Cluster& cluster) {
  const Topology& topology = cluster.topology;
  const bool has_fabric = cluster.server_gpus.size() > 1;
  std::set<std::tuple<Distance, Distance, std::vector<std::uint32_t>>> seen;
  std::optional<Routing> routing;
  std::vector<std::string> notes;
  std::size_t first = 0;
  for (std::size_t server = 0; server < cluster.server_gpus.size(); ++server) {
    const auto count = static_cast<std::size_t>(cluster.server_gpus[server]);
    const std::span gpus = std::span(cluster.gpus).subspan(first, std::min(count, kMaxGpus));
    first += count;
    if (gpus.empty() || !topology.node(gpus.front()).server) {
      continue;
    }
    const ServerTraits& traits = topology.server(*topology.node(gpus.front()).server);
    std::vector<std::uint32_t> parts;
    for (const NodeId gpu : gpus) {
      parts.push_back(static_cast<std::uint32_t>(topology.node(gpu).part));
    }
    if (!seen.emplace(traits.peer_access, traits.gpudirect, std::move(parts)).second) {
      continue;
    }
    if (!routing) {
      routing.emplace(topology, cluster.routing);
    }
    const std::string note =
        note_of(fmt::format("server{}", server), gpus.size(), staged_pairs(*routing, gpus),
                has_fabric ? staged_to_nics(*routing, gpus, traits.gpudirect) : 0);
    if (!note.empty()) {
      notes.push_back(note);
    }
  }
  return notes;
}

}  // namespace trainyard
