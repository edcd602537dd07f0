// SPDX-License-Identifier: Apache-2.0
// Cuts are maximum flows between switches: an endpoint is what it adds to the supply or demand of
// its switch, so the graph has as many vertices as there are switches, whatever hangs off them.
#include "topology/lint/metrics.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string_view>
#include <utility>

#include "topology/graph/max_flow.h"
#include "topology/routing/fabric_router.h"

namespace trainyard {
namespace {

// Steps over edges; about half a second.
constexpr std::uint64_t kMaxDiameterSteps = 200'000'000;

enum class Side : std::uint8_t { First, Second };
using SideOf = std::function<Side(const SwitchPort& port)>;

std::optional<CutBandwidth> cut(const SwitchGraph& graph, std::string name, const SideOf& side_of) {
  FlowProblem problem{.supply = std::vector<std::int64_t>(graph.size(), 0),
                      .demand = std::vector<std::int64_t>(graph.size(), 0),
                      .edges = {}};
  std::int64_t first = 0;
  std::int64_t second = 0;
  for (const SwitchPort& port : graph.ports()) {
    const bool is_first = side_of(port) == Side::First;
    (is_first ? problem.supply : problem.demand)[port.at] += port.bits_per_second;
    (is_first ? first : second) += port.bits_per_second;
  }
  if (first == 0 || second == 0) {
    return std::nullopt;
  }
  for (const SwitchEdge& edge : graph.edges()) {
    problem.edges.push_back(
        {.source = edge.source, .target = edge.target, .capacity = edge.bits_per_second});
  }
  return CutBandwidth{.name = std::move(name),
                      .bits_per_second = max_flow(problem),
                      .injection_bits_per_second = std::min(first, second)};
}

// The coordinate of a switch of a grid.
std::uint32_t coordinate(const FabricShape& shape, std::uint32_t offset, std::size_t dimension) {
  for (std::size_t lower = 0; lower < dimension; ++lower) {
    offset /= static_cast<std::uint32_t>(shape.dimensions[lower]);
  }
  return offset % static_cast<std::uint32_t>(shape.dimensions[dimension]);
}

std::string first_half(std::string_view what, std::uint32_t count) {
  const std::uint32_t last = (count + 1) / 2 - 1;
  return last == 0 ? fmt::format("{} 0 and the rest", what)
                   : fmt::format("{}s 0 to {} and the rest", what, last);
}

Side half(std::uint32_t index, std::uint32_t count) {
  return index < (count + 1) / 2 ? Side::First : Side::Second;
}

class Cuts {
 public:
  Cuts(const Cluster& cluster, const SwitchGraph& graph)
      : topology_(cluster.topology), shape_(cluster.routing.fabric), graph_(graph) {}

  std::vector<CutBandwidth> all() {
    add_servers();
    for (std::size_t dimension = 0; dimension < shape_.dimensions.size(); ++dimension) {
      add_dimension(dimension);
    }
    if (shape_.group_size > 0) {
      const std::uint32_t groups = shape_.switches / shape_.group_size;
      add(first_half("group", groups),
          [&](const SwitchPort& port) { return half(offset(port) / shape_.group_size, groups); });
    }
    // Sorts by share of the injection; equal ones stay in order.
    std::ranges::stable_sort(cuts_, [](const CutBandwidth& a, const CutBandwidth& b) {
      const auto share = [](const CutBandwidth& each) {
        return static_cast<double>(each.bits_per_second) /
               static_cast<double>(each.injection_bits_per_second);
      };
      return share(a) < share(b);
    });
    return std::move(cuts_);
  }

 private:
  void add(std::string name, const SideOf& side_of) {
    if (auto found = cut(graph_, std::move(name), side_of)) {
      cuts_.push_back(std::move(*found));
    }
  }

  void add_servers() {
    const std::uint32_t servers = topology_.server_count();
    if (servers < 2) {
      return;
    }
    add(first_half("server", servers), [&](const SwitchPort& port) {
      const auto server = topology_.node(port.endpoint).server;
      return half(server ? server->value() : 0, servers);
    });
  }

  void add_dimension(std::size_t dimension) {
    const auto size = static_cast<std::uint32_t>(shape_.dimensions[dimension]);
    if (size < 2) {
      return;
    }
    add(fmt::format("dimension {} at {}", dimension, (size + 1) / 2), [&](const SwitchPort& port) {
      return half(coordinate(shape_, offset(port), dimension), size);
    });
  }

  [[nodiscard]] std::uint32_t offset(const SwitchPort& port) const {
    return graph_.switches()[port.at].value() - shape_.first_switch.value();
  }

  const Topology& topology_;
  const FabricShape& shape_;
  const SwitchGraph& graph_;
  std::vector<CutBandwidth> cuts_;
};

// The farthest leaf from `source`, in links; leaves that cannot be reached do not count.
int eccentricity(const SwitchGraph& graph, std::uint32_t source,
                 std::vector<std::uint32_t>& distances, std::vector<std::uint32_t>& queue) {
  constexpr std::uint32_t kNew = std::numeric_limits<std::uint32_t>::max();
  distances.assign(graph.size(), kNew);
  queue.assign(1, source);
  distances[source] = 0;
  std::uint32_t max = 0;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const std::uint32_t distance = distances[queue[next]];
    if (graph.tier(queue[next]) == 0U) {
      max = distance;
    }
    for (const SwitchEdge& edge : graph.edges_from(queue[next])) {
      if (distances[edge.target] == kNew) {
        distances[edge.target] = distance + 1;
        queue.push_back(edge.target);
      }
    }
  }
  return static_cast<int>(max);
}

}  // namespace

std::string rate_text(std::int64_t bits_per_second) {
  const double gigabytes = static_cast<double>(bits_per_second) / 8e9;
  return gigabytes >= 1000.0 ? fmt::format("{:.0f} GB/s", gigabytes)
                             : fmt::format("{:.4g} GB/s", gigabytes);
}

std::vector<CutBandwidth> cut_bandwidths(const Cluster& cluster, const SwitchGraph& graph) {
  return Cuts(cluster, graph).all();
}

std::optional<Diameter> find_diameter(const SwitchGraph& graph, Routing& routing) {
  const std::vector<std::uint32_t> leaves = graph.leaves();
  if (leaves.size() < 2) {
    return std::nullopt;
  }
  if (const auto known = routing.fabric().diameter()) {
    return Diameter{.links = *known, .at_least = false};
  }
  const std::uint64_t steps = graph.size() + graph.edges().size();
  const std::uint64_t searches =
      std::clamp<std::uint64_t>(kMaxDiameterSteps / steps, 1, leaves.size());
  Diameter diameter{.links = 0, .at_least = searches < leaves.size()};
  std::vector<std::uint32_t> distances;
  std::vector<std::uint32_t> queue;
  for (std::uint64_t search = 0; search < searches; ++search) {
    const std::uint32_t leaf = leaves[search * leaves.size() / searches];
    diameter.links = std::max(diameter.links, eccentricity(graph, leaf, distances, queue));
  }
  return diameter;
}

std::vector<TierLoad> tier_loads(const SwitchGraph& graph) {
  struct Load {
    std::int64_t down = 0;
    std::int64_t up = 0;
  };
  std::vector<Load> loads(graph.size());
  for (const SwitchPort& port : graph.ports()) {
    loads[port.at].down += port.bits_per_second;
  }
  for (const SwitchEdge& edge : graph.edges()) {
    const auto own = graph.tier(edge.source);
    const auto other = graph.tier(edge.target);
    if (own && other && *own != *other) {
      Load& load = loads[edge.source];
      (*other > *own ? load.up : load.down) += edge.bits_per_second;
    }
  }
  std::vector<TierLoad> tiers;
  for (std::uint32_t index = 0; index < graph.size(); ++index) {
    const auto own = graph.tier(index);
    if (!own) {
      continue;
    }
    if (*own >= tiers.size()) {
      tiers.resize(*own + 1);
    }
    TierLoad& tier = tiers[*own];
    const Load& load = loads[index];
    const double ratio =
        load.up > 0 ? static_cast<double>(load.down) / static_cast<double>(load.up) : 0.0;
    if (tier.switches == 0 || ratio > tier.max_oversubscription) {
      tier.max_oversubscription = ratio;
      tier.down_bits_per_second = load.down;
      tier.up_bits_per_second = load.up;
      tier.worst = graph.switches()[index];
    }
    if (ratio > 0.0 && (tier.min_oversubscription == 0.0 || ratio < tier.min_oversubscription)) {
      tier.min_oversubscription = ratio;
    }
    ++tier.switches;
  }
  return tiers;
}

}  // namespace trainyard
