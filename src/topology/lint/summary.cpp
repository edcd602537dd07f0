// SPDX-License-Identifier: Apache-2.0
#include "topology/lint/summary.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "topology/graph/switch_graph.h"
#include "topology/lint/lint.h"
#include "topology/lint/metrics.h"

namespace trainyard {
namespace {

class Summary {
 public:
  explicit Summary(const Cluster& cluster)
      : cluster_(cluster),
        topology_(cluster.topology),
        routing_(cluster.topology, cluster.routing),
        graph_(cluster.topology) {}

  std::vector<SummaryRow> rows() && {
    add_cluster();
    add_devices();
    add_links();
    add_leaves();
    add_metrics();
    if (cluster_.gpus.size() > 1) {
      add_route(cluster_.gpus[1]);
    }
    const std::size_t last = last_server();
    if (last > 1) {  // Otherwise it is rank 1 or rank 0.
      add_route(cluster_.gpus[last]);
    }
    add_findings();
    return std::move(rows_);
  }

 private:
  void add(std::string section, std::string item, std::string value) {
    rows_.push_back({std::move(section), std::move(item), std::move(value)});
  }

  void add_cluster() {
    add("cluster", "name", cluster_.name);
    add("cluster", "servers", std::to_string(cluster_.nodes));
    add("cluster", "GPUs per server", server_runs_text(cluster_.server_gpus));
    add("cluster", "NICs per server", std::to_string(cluster_.nics_per_node));
    add("cluster", "GPUs", std::to_string(cluster_.gpus.size()));
    add("cluster", "routing", std::string(to_string(cluster_.routing.policy)));
    add("cluster", "values that are estimates", std::to_string(cluster_.estimates.size()));
  }

  void add_devices() {
    std::array<int, kNodeKinds> counts = {};
    for (const Node& node : topology_.nodes()) {
      ++counts[static_cast<std::size_t>(node.kind)];
    }
    for (std::size_t kind = 0; kind < counts.size(); ++kind) {
      if (counts[kind] > 0) {
        add("devices", std::string(to_string(static_cast<NodeKind>(kind))),
            std::to_string(counts[kind]));
      }
    }
  }

  // Adds links by the kinds of the two ends, so that GPU and NIC links of equal rate are told
  // apart.
  void add_links() {
    using Key = std::tuple<LinkKind, NodeKind, NodeKind, Bandwidth, SimTime>;
    std::map<Key, int> counts;
    for (const Link& link : topology_.links()) {
      const NodeKind source = topology_.node(link.source).kind;
      const NodeKind target = topology_.node(link.target).kind;
      if (source <= target) {
        ++counts[{link.spec.kind, source, target, link.spec.bandwidth, link.spec.latency}];
      }
    }
    for (const auto& [key, count] : counts) {
      const auto& [kind, source, target, bandwidth, latency] = key;
      const int pairs = source == target ? count / 2 : count;
      add("links",
          fmt::format("{}, {} to {}", to_string(kind), to_string(source), to_string(target)),
          fmt::format("{} of {} each way, {}", pairs, rate_text(bandwidth.bits_per_second()),
                      to_string(latency)));
    }
  }

  struct Leaf {
    std::int64_t down = 0;  // Bits per second.
    std::int64_t up = 0;
    std::set<NodeId> gpus;
  };

  // Returns none on a route that stays in a server or an NVLink domain.
  [[nodiscard]] std::optional<NodeId> first_switch(const std::vector<LinkId>& path) const {
    const auto hop = std::find_if(path.begin(), path.end(), [&](LinkId link) {
      return topology_.link(link).spec.kind == LinkKind::Network;
    });
    return hop == path.end() ? std::nullopt : std::optional(topology_.link(*hop).target);
  }

  // The first GPU of the last server.
  [[nodiscard]] std::size_t last_server() const {
    return cluster_.gpus.size() - static_cast<std::size_t>(cluster_.server_gpus.back());
  }

  // Returns whether the way to `other` crosses the fabric; the leaves it enters by.
  bool mark_leaves(NodeId gpu, NodeId other, std::map<NodeId, Leaf>& leaves) {
    std::vector<LinkId> path;
    bool crosses = false;
    // Takes as many flows as it takes to use every NIC that the GPU may use.
    for (int flow = 0; flow < std::max(cluster_.nics_per_node, 1); ++flow) {
      if (routing_.route(gpu, other, static_cast<std::uint32_t>(flow), path)) {
        if (const auto leaf = first_switch(path)) {
          leaves[*leaf].gpus.insert(gpu);
          crosses = true;
        }
      }
    }
    return crosses;
  }

  // The switches with links to NICs or GPUs.
  [[nodiscard]] std::map<NodeId, Leaf> find_leaves() {
    std::map<NodeId, Leaf> leaves;
    for (const SwitchPort& port : graph_.ports()) {
      leaves[graph_.switches()[port.at]].down += port.bits_per_second;
    }
    for (auto& [id, leaf] : leaves) {
      for (const SwitchEdge& edge : graph_.edges_from(*graph_.index_of(id))) {
        leaf.up += edge.bits_per_second;
      }
    }
    for (const NodeId gpu : cluster_.gpus) {
      for (const std::size_t other : {last_server(), std::size_t{0}}) {
        if (mark_leaves(gpu, cluster_.gpus[other], leaves)) {
          break;
        }
      }
    }
    return leaves;
  }

  void add_leaves() {
    const std::map<NodeId, Leaf> leaves = find_leaves();
    if (leaves.empty()) {
      return;
    }
    double worst = 0.0;
    std::size_t fewest = cluster_.gpus.size();
    std::size_t max = 0;
    for (const auto& [id, leaf] : leaves) {
      worst = std::max(
          worst, leaf.up > 0 ? static_cast<double>(leaf.down) / static_cast<double>(leaf.up) : 0.0);
      fewest = std::min(fewest, leaf.gpus.size());
      max = std::max(max, leaf.gpus.size());
    }
    const Leaf& first = leaves.begin()->second;
    add("fabric", "leaf switches", std::to_string(leaves.size()));
    add("fabric", "GPUs per leaf",
        cluster_.nodes == 1 ? "not used by one server"
        : fewest == max     ? std::to_string(max)
                            : fmt::format("{} to {}", fewest, max));
    add("fabric", "first leaf",
        fmt::format("{} down, {} up", rate_text(first.down), rate_text(first.up)));
    add("fabric", "oversubscription",
        worst > 0.0 ? fmt::format("{:.3g}:1", worst) : "none, one tier");
  }

  void add_metrics() {
    const std::vector<CutBandwidth> cuts = cut_bandwidths(cluster_, graph_);
    if (!cuts.empty()) {
      const CutBandwidth& worst = cuts.front();
      const auto rate = static_cast<double>(worst.bits_per_second);
      const auto full = static_cast<double>(worst.injection_bits_per_second);
      add("fabric", "bisection bandwidth",
          fmt::format("{} of {} ({:.4g} %), {}", rate_text(worst.bits_per_second),
                      rate_text(worst.injection_bits_per_second), 100.0 * rate / full, worst.name));
    }
    if (const auto diameter = find_diameter(graph_, routing_)) {
      add("fabric", "diameter",
          fmt::format("{}{} links between leaves", diameter->at_least ? "at least " : "",
                      diameter->links));
    }
    const std::vector<TierLoad> tiers = tier_loads(graph_);
    for (std::size_t tier = 0; tier < tiers.size() && tiers.size() > 1; ++tier) {
      const TierLoad& load = tiers[tier];
      const double min = load.min_oversubscription;
      const double max = load.max_oversubscription;
      add("fabric", fmt::format("tier {}", tier),
          fmt::format("{} switch{}, {}", load.switches, load.switches == 1 ? "" : "es",
                      max == 0.0   ? "the highest"
                      : min == max ? fmt::format("{:.3g}:1 down to up", max)
                                   : fmt::format("{:.3g}:1 to {:.3g}:1 down to up", min, max)));
    }
  }

  void add_findings() {
    int number = 0;
    for (const Finding& finding : lint(cluster_)) {
      add("lint", fmt::format("{}. {}: {}", ++number, to_string(finding.severity), finding.code),
          finding.message);
    }
  }

  void add_route(NodeId target) {
    const NodeId source = cluster_.gpus[0];
    const std::string section = fmt::format("route from {} to {}", topology_.node(source).name,
                                            topology_.node(target).name);
    std::vector<LinkId> path;
    if (!routing_.route(source, target, 0, path)) {
      add(section, "unreachable", "no path");
      return;
    }
    add(section, "latency", to_string(path_latency(topology_, path)));
    add(section, "bandwidth", rate_text(path_bandwidth(topology_, path).bits_per_second()));
    for (std::size_t hop = 0; hop < path.size(); ++hop) {
      const Link& link = topology_.link(path[hop]);
      std::string value = fmt::format("{} {}, {}", to_string(link.spec.kind),
                                      rate_text(link.spec.bandwidth.bits_per_second()),
                                      to_string(link.spec.latency));
      const SimTime passing = topology_.node(link.target).latency;
      if (hop + 1 < path.size() && passing > SimTime()) {
        value += fmt::format(", then {}", to_string(passing));
      }
      add(section, fmt::format("{}. {}", hop + 1, topology_.node(link.target).name), value);
    }
  }

  const Cluster& cluster_;
  const Topology& topology_;
  Routing routing_;
  SwitchGraph graph_;
  std::vector<SummaryRow> rows_;
};

}  // namespace

std::vector<SummaryRow> summarise(const Cluster& cluster) {
  return Summary(cluster).rows();
}

}  // namespace trainyard
