// SPDX-License-Identifier: Apache-2.0
#include "collectives/placement/placement.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "collectives/placement/aggregation.h"
#include "collectives/placement/grid_order.h"
#include "collectives/placement/rank_grid.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {

namespace {

// The traits that tell kinds of servers apart. GPUs are those that take part, numbered from 0.
struct ServerShape {
  int gpus = 0;
  std::vector<std::tuple<int, int, int>> links;  // From, to, lanes: direct links between GPUs.
  std::vector<std::vector<int>> nics;            // NICs of each GPU, numbered within the server.
  int nic_count = 0;  // NICs that its GPUs use; or the GPUs if some of them have none.
  friend auto operator<=>(const ServerShape&, const ServerShape&) = default;
};

std::vector<std::tuple<int, int, int>> direct_links(const Topology& topology,
                                                    std::span<const NodeId> gpus) {
  std::map<NodeId, int> number;
  for (const NodeId gpu : gpus) {
    number.emplace(gpu, static_cast<int>(number.size()));
  }
  std::vector<std::tuple<int, int, int>> links;
  for (const NodeId gpu : gpus) {
    for (const LinkId id : topology.links_from(gpu)) {
      const Link& link = topology.link(id);
      if (const auto target = number.find(link.target); target != number.end()) {
        links.emplace_back(number.at(gpu), target->second, link.spec.lanes);
      }
    }
  }
  return links;
}

ServerShape kind_of(const Routing& routing, std::span<const NodeId> gpus) {
  ServerShape kind{.gpus = static_cast<int>(gpus.size()),
                   .links = direct_links(routing.topology(), gpus),
                   .nics = {}};
  std::map<NodeId, int> number;
  for (const NodeId gpu : gpus) {
    std::vector<int>& own = kind.nics.emplace_back();
    for (const NodeId nic : routing.nics(gpu)) {
      own.push_back(number.emplace(nic, static_cast<int>(number.size())).first->second);
    }
  }
  kind.nic_count = static_cast<int>(number.size());
  if (std::ranges::any_of(kind.nics, [](const auto& own) { return own.empty(); })) {
    kind.nic_count = kind.gpus;
    for (int gpu = 0; gpu < kind.gpus; ++gpu) {
      kind.nics[static_cast<std::size_t>(gpu)] = {gpu};
    }
  }
  return kind;
}

// The kinds of the cluster's servers, in the order of their first server; the kind of each goes to
// `of_server`.
std::vector<ServerShape> kinds_of(const Cluster& cluster, const Routing& routing,
                                  std::vector<std::uint32_t>& of_server) {
  std::vector<ServerShape> kinds;
  std::map<ServerShape, std::uint32_t> known;
  std::span<const NodeId> rest(cluster.gpus);
  for (const int gpus : cluster.server_gpus) {
    const auto count = static_cast<std::size_t>(gpus);
    ServerShape kind = kind_of(routing, rest.first(count));
    rest = rest.subspan(count);
    const auto [place, is_new] = known.try_emplace(kind, static_cast<std::uint32_t>(kinds.size()));
    of_server.push_back(place->second);
    if (is_new) {
      kinds.push_back(std::move(kind));
    }
  }
  CHECK(rest.empty(), "a GPU that belongs to no server");
  return kinds;
}

std::vector<int> natural_order(int gpus) {
  std::vector<int> order(static_cast<std::size_t>(gpus));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Along the direct links of a server where they form rings, otherwise its natural order.
struct ServerRings {
  LocalOrders orders;
  bool along_links = false;
};

ServerRings rings_of(const ServerShape& kind) {
  const auto gpus = static_cast<std::size_t>(kind.gpus);
  if (!kind.links.empty()) {
    std::vector<std::vector<int>> lanes(gpus, std::vector<int>(gpus, 0));
    for (const auto& [from, to, count] : kind.links) {
      lanes[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] += count;
    }
    if (LocalOrders rings = disjoint_rings(lanes); !rings.empty()) {
      return {.orders = std::move(rings), .along_links = true};
    }
  }
  return {.orders = {natural_order(kind.gpus)}};
}

// The fewest channels, from the greatest of `units` to 64 (or that, if it is more), that load them
// most evenly: of n channels the fullest of u units carries n/u rounded up instead of n/u.
int even_channels(const std::vector<int>& units) {
  constexpr int kMaxChannels = 64;
  const auto excess = [&](int channels) {  // Fullest over even load, times n, of the worst units.
    int max = 0;
    for (const int count : units) {
      max = std::max(max, (channels + count - 1) / count * count);
    }
    return std::int64_t{max};
  };
  const int min = std::ranges::max(units);
  int best = min;
  for (int channels = min + 1; channels <= kMaxChannels; ++channels) {
    if (excess(channels) * best < excess(best) * channels) {
      best = channels;
    }
  }
  return best;
}

std::vector<int> rotated(std::vector<int> order, std::size_t first) {
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first), order.end());
  return order;
}

// How many channels use each NIC of a server in one direction.
class NicLoad {
 public:
  explicit NicLoad(const ServerShape& kind)
      : kind_(kind), channels_(static_cast<std::size_t>(kind.nic_count), 0) {}

  [[nodiscard]] int of(int gpu) const { return channels_[nic(gpu)]; }
  void add(int gpu) { ++channels_[nic(gpu)]; }

 private:
  // The emptiest of those of the GPU.
  [[nodiscard]] std::size_t nic(int gpu) const {
    const std::vector<int>& own = kind_.nics[static_cast<std::size_t>(gpu)];
    return static_cast<std::size_t>(*std::ranges::min_element(
        own, {}, [&](int nic) { return channels_[static_cast<std::size_t>(nic)]; }));
  }

  const ServerShape& kind_;
  std::vector<int> channels_;
};

// Picks rings, and where to cut them open, so that as many channels as NICs enter a node at each
// NIC and leave it at each NIC: every channel takes the cut that makes the fullest NIC least full,
// then loads its two NICs least, then uses the least used ring, then comes first.
LocalOrders cut_rings(const LocalOrders& rings, int channels, const ServerShape& kind) {
  NicLoad entering(kind);
  NicLoad leaving(kind);
  std::vector<int> used(rings.size(), 0);
  LocalOrders chosen;
  while (static_cast<int>(chosen.size()) < channels) {
    std::vector<int> best;
    std::size_t best_ring = 0;
    std::tuple<int, int, int> min{std::numeric_limits<int>::max(), 0, 0};
    for (std::size_t ring = 0; ring < rings.size(); ++ring) {
      for (std::size_t first = 0; first < rings[ring].size(); ++first) {
        std::vector<int> cut = rotated(rings[ring], first);
        const int in = entering.of(cut.front());
        const int out = leaving.of(cut.back());
        const std::tuple load{std::max(in, out), in + out, used[ring]};
        if (load < min) {
          min = load;
          best = std::move(cut);
          best_ring = ring;
        }
      }
    }
    entering.add(best.front());
    leaving.add(best.back());
    ++used[best_ring];
    chosen.push_back(std::move(best));
  }
  return chosen;
}

// A channel for each NIC of a GPU, of which a message takes one; on one server there is no need.
int channels_per_gpu(const std::vector<ServerShape>& kinds, int nodes) {
  std::vector<int> units{1};
  for (const ServerShape& kind : kinds) {
    for (const std::vector<int>& own : kind.nics) {
      units.push_back(nodes == 1 ? 1 : static_cast<int>(own.size()));
    }
  }
  return even_channels(units);
}

void lay_out_one_server(const ServerRings& rings, std::optional<int> channels, RankLayout& layout) {
  layout.chain_in_single_node = rings.along_links;
  const int suggested = std::max(2, static_cast<int>(rings.orders.size()));
  LocalOrders& orders = layout.kinds.emplace_back();
  for (int channel = 0; channel < channels.value_or(suggested); ++channel) {
    orders.push_back(rings.orders[static_cast<std::size_t>(channel) % rings.orders.size()]);
  }
}

void lay_out_servers(const std::vector<ServerShape>& kinds, const std::vector<ServerRings>& rings,
                     std::optional<int> channels, RankLayout& layout) {
  std::vector<int> units{2};  // Both trees of the double tree.
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    units.push_back(static_cast<int>(rings[kind].orders.size()));
    units.push_back(kinds[kind].nic_count);
  }
  const int count = channels ? *channels : even_channels(units);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    layout.kinds.push_back(cut_rings(rings[kind].orders, count, kinds[kind]));
  }
}

// A walk over the part of the grid that holds its first `count` places: whole rows, planes, ...
GridOrder walk(const FabricShape& grid, int count) {
  std::vector<int> dimensions = grid.dimensions;
  std::vector<bool> wraps = grid.wraps;
  int below = std::accumulate(dimensions.begin(), dimensions.end(), 1, std::multiplies<>());
  for (std::size_t dimension = dimensions.size(); dimension-- > 0;) {
    below /= dimensions[dimension];
    const int needed = (count + below - 1) / below;
    wraps[dimension] = grid.joins_all || (wraps[dimension] && needed == dimensions[dimension]);
    dimensions[dimension] = std::min(needed, dimensions[dimension]);
    count = needed == 1 ? count : below;
  }
  return grid_order(dimensions, wraps);
}

// GPUs that hang off the switches of a grid: from neighbour to neighbour, and back on every other
// channel.
bool lay_out_grid(const Cluster& cluster, std::optional<int> channels, Placement& placement) {
  const FabricShape& grid = cluster.routing.fabric;
  if (!grid.is_grid()) {
    return false;
  }
  std::vector<std::vector<int>> ranks_at(grid.switches);
  int places = 0;
  for (std::size_t rank = 0; rank < cluster.gpus.size(); ++rank) {
    const auto place = place_in_grid(cluster.topology, grid, cluster.gpus[rank]);
    if (!place) {
      return false;
    }
    ranks_at[static_cast<std::size_t>(*place)].push_back(static_cast<int>(rank));
    places = std::max(places, *place + 1);
  }
  const GridOrder order = walk(grid, places);
  std::vector<int> there;
  bool is_closed = order.closed;
  for (const int position : order.positions) {
    const std::vector<int>& ranks = ranks_at[static_cast<std::size_t>(position)];
    is_closed = is_closed && !ranks.empty();
    there.insert(there.end(), ranks.begin(), ranks.end());
  }
  const std::vector<int> back(there.rbegin(), there.rend());
  LocalOrders orders;
  for (int channel = 0; channel < channels.value_or(2); ++channel) {
    orders.push_back(channel % 2 == 0 ? there : back);
  }
  placement.options.layout = even_layout(1, std::move(orders));
  if (!is_closed) {
    placement.remarks.emplace_back(
        "no ring leads from neighbour to neighbour over the part of the grid that takes part: some "
        "hops cross several links");
  }
  return true;
}

// One node for the ranks of each NVSwitch, in their natural order.
RankLayout layout_by_switch(const std::vector<int>& switch_ranks, int channels) {
  RankLayout layout;
  std::map<int, std::uint32_t> kinds;  // Keyed by ranks per node.
  for (const int ranks : switch_ranks) {
    const auto [kind, is_new] =
        kinds.try_emplace(ranks, static_cast<std::uint32_t>(layout.kinds.size()));
    if (is_new) {
      layout.kinds.emplace_back(static_cast<std::size_t>(channels), natural_order(ranks));
    }
    layout.node_kinds.push_back(kind->second);
  }
  return layout;
}

// A grid fabric has a channel for each dimension and way, which use all its links at once.
void lay_out_dimensions(const RankGrid& grid, std::optional<int> channels, Placement& placement) {
  placement.options.dimensions = grid.dimensions;
  placement.options.rotate_dimensions = grid.is_fabric;
  if (grid.is_fabric) {
    placement.options.layout =
        flat_layout(static_cast<int>(placement.nodes.size()),
                    channels.value_or(2 * static_cast<int>(grid.dimensions.size())));
  }
}

void add_plan(const Cluster& cluster, const Routing& routing, Algorithm algorithm,
              std::optional<int> channels, Placement& placement) {
  std::string error;
  std::optional<SwitchPlan> plan = plan_switches(cluster, routing, algorithm, error);
  if (!plan) {
    throw ConfigError(
        fmt::format("{} cannot run {}: {}", cluster.name, to_string(algorithm), error));
  }
  placement.nodes.insert(placement.nodes.end(), plan->relays.begin(), plan->relays.end());
  placement.options.trees = std::move(plan->trees);
  if (!plan->switch_ranks.empty()) {  // For both trees, and each NIC of a GPU, alike.
    const int of_gpu = placement.options.layout.channels();
    placement.options.layout =
        layout_by_switch(plan->switch_ranks, channels ? *channels : even_channels({2, of_gpu}));
  }
  if (plan->grid) {
    lay_out_dimensions(*plan->grid, channels, placement);
  }
}

}  // namespace

Placement place(const Cluster& cluster, const Routing& routing, Algorithm algorithm,
                std::optional<int> channels) {
  Placement placement;
  placement.nodes = cluster.gpus;
  if (algorithm->order == ChannelOrder::Walk && lay_out_grid(cluster, channels, placement)) {
    return placement;
  }
  RankLayout& layout = placement.options.layout;
  const std::vector<ServerShape> kinds = kinds_of(cluster, routing, layout.node_kinds);
  const int nodes = layout.nodes();
  layout.alternate = nodes > 1 && nodes % 2 == 0;
  if (algorithm->order == ChannelOrder::Natural) {
    const int count = channels ? *channels : channels_per_gpu(kinds, nodes);
    placement.options.are_alike = true;
    for (const ServerShape& kind : kinds) {
      layout.kinds.emplace_back(static_cast<std::size_t>(count), natural_order(kind.gpus));
    }
    add_plan(cluster, routing, algorithm, channels, placement);
    return placement;
  }
  std::vector<ServerRings> rings;
  bool any_without_ring = false;
  for (const ServerShape& kind : kinds) {
    rings.push_back(rings_of(kind));
    any_without_ring = any_without_ring || (!kind.links.empty() && !rings.back().along_links);
  }
  if (any_without_ring) {
    placement.remarks.emplace_back(
        "the direct links between the GPUs of a node form no ring: the channels visit the GPUs in "
        "their natural order, in part over PCIe");
  }
  if (nodes == 1) {
    lay_out_one_server(rings.front(), channels, layout);
  } else {
    lay_out_servers(kinds, rings, channels, layout);
  }
  return placement;
}

}  // namespace trainyard
