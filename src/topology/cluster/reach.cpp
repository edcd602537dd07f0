// SPDX-License-Identifier: Apache-2.0
#include "topology/cluster/reach.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "topology/routing/fabric_router.h"
#include "topology/routing/layer.h"

namespace trainyard {
namespace {

constexpr std::size_t kMaxGpus = 128;
constexpr std::size_t kMaxKindsShown = 16;
constexpr std::size_t kMaxLeaves = 300;
constexpr std::size_t kMaxCabled = 64;
constexpr std::uint32_t kMaxLabels = 8;

template <typename T>
std::vector<T> spread(const std::vector<T>& all, std::size_t max) {
  if (all.size() <= max) {
    return all;
  }
  std::vector<T> some;
  for (std::size_t index = 0; index < max; ++index) {
    some.push_back(all[index * all.size() / max]);
  }
  return some;
}

// Returns the devices that a GPU reaches without the fabric and that have a link into it; a GPU or
// NIC does not forward.
std::vector<NodeId> uplink_devices(const Topology& topology, NodeId gpu) {
  std::vector<NodeId> queue = {gpu};
  std::vector<NodeId> found;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const NodeKind kind = topology.node(queue[next]).kind;
    const bool is_end = next > 0 && (kind == NodeKind::Gpu || kind == NodeKind::Nic);
    bool has_uplink = false;
    for (const LinkId id : topology.links_from(queue[next])) {
      const Link& link = topology.link(id);
      if (link.spec.kind == LinkKind::Network) {
        has_uplink = true;
      } else if (!is_end && std::ranges::find(queue, link.target) == queue.end()) {
        queue.push_back(link.target);
      }
    }
    if (has_uplink && (kind == NodeKind::Nic || queue[next] == gpu)) {
      found.push_back(queue[next]);
    }
  }
  return found;
}

class ReachSearch {
 public:
  ReachSearch(const Cluster& cluster, Routing& routing, const SwitchGraph& graph,
              const ServerKinds& kinds)
      : cluster_(cluster),
        topology_(cluster.topology),
        routing_(routing),
        graph_(graph),
        kinds_(kinds),
        labels_(std::clamp<std::uint32_t>(static_cast<std::uint32_t>(cluster.nics_per_node), 1,
                                          kMaxLabels)) {}

  std::optional<Unreachable> run() {
    const std::vector<AlikeServers> kinds = spread(kinds_.kinds(), kMaxKindsShown);
    for (const AlikeServers& kind : kinds) {
      try_servers(kind.first, kind.first, kind.count);
    }
    for (const AlikeServers& from : kinds) {
      for (const AlikeServers& to : kinds) {
        try_kinds(from, to);
      }
    }
    if (!found_ && are_cabled()) {
      try_all_servers();
    }
    if (!found_) {
      try_leaves();
    }
    return std::move(found_);
  }

 private:
  // Whether servers are cabled to each other, without a switch. They pass nothing on, so that even
  // servers that are alike may reach different ones.
  [[nodiscard]] bool are_cabled() const {
    for (std::uint32_t index = 0; index < topology_.link_count(); ++index) {
      const Link& link = topology_.link(LinkId(index));
      if (topology_.node(link.source).kind == NodeKind::Nic &&
          topology_.node(link.target).kind == NodeKind::Nic) {
        return true;
      }
    }
    return false;
  }
  void try_all_servers() {
    std::vector<ServerId> servers;
    for (std::uint32_t index = 0; index < topology_.server_count(); ++index) {
      servers.emplace_back(index);
    }
    servers = spread(servers, kMaxCabled);
    for (const ServerId from : servers) {
      for (const ServerId to : servers) {
        if (from != to) {
          try_servers(from, to, 1);
        }
      }
    }
  }

  // The first servers of both; then the last ones, which may be in other NVLink domains.
  void try_kinds(const AlikeServers& from, const AlikeServers& to) {
    const bool is_same = from.first == to.first;
    if (is_same && !from.second) {
      return;
    }
    const std::int64_t pairs = from.count * (is_same ? from.count - 1 : to.count);
    try_servers(from.first, is_same ? *from.second : to.first, pairs);
    if (!found_ && to.last) {
      try_servers(from.first, *to.last, pairs);
    }
    if (!found_ && from.last) {
      try_servers(*from.last, to.first, pairs);
    }
  }

  void try_servers(ServerId from, ServerId to, std::int64_t pairs_of_servers) {
    const std::vector<NodeId> sources = spread(kinds_.gpus_of(from), kMaxGpus);
    const std::vector<NodeId> targets = spread(kinds_.gpus_of(to), kMaxGpus);
    for (const NodeId source : sources) {
      for (const NodeId target : targets) {
        if (!all_routes(source, target)) {
          add(source, target, pairs_of_servers);
        }
      }
    }
  }

  [[nodiscard]] bool all_routes(NodeId source, NodeId target) {
    for (std::uint32_t label = 0; label < labels_; ++label) {
      if (!routing_.route(source, target, label, path_)) {
        return false;
      }
    }
    return true;
  }

  void add(NodeId source, NodeId target, std::int64_t pairs) {
    if (!found_) {
      found_ = {.source = source, .target = target, .pairs = 0, .why = why(source, target)};
    }
    found_->pairs += pairs;
  }

  [[nodiscard]] std::string why(NodeId source, NodeId target) const {
    if (topology_.node(source).server == topology_.node(target).server &&
        topology_.server_count() == 1) {
      return "no link of the server joins them";
    }
    const std::vector<NodeId> sources = uplink_devices(topology_, source);
    const std::vector<NodeId> targets = uplink_devices(topology_, target);
    if (sources.empty() || targets.empty()) {
      return fmt::format("{} reaches no NIC with a cable",
                         topology_.node(sources.empty() ? source : target).name);
    }
    for (const NodeId from : sources) {
      for (const NodeId to : targets) {
        const auto a = leaf(from);
        const auto b = leaf(to);
        if (a && b && graph_.component(*a) != graph_.component(*b)) {
          return fmt::format("no cables join {} and {}, the switches of {} and {}", switch_name(*a),
                             switch_name(*b), topology_.node(from).name, topology_.node(to).name);
        }
      }
    }
    const auto has_leaf = [this](NodeId nic) { return leaf(nic).has_value(); };
    return std::ranges::any_of(sources, has_leaf) || std::ranges::any_of(targets, has_leaf)
               ? "the routing of the fabric finds no way"
               : "no cable joins their servers, and servers pass nothing on";
  }

  [[nodiscard]] std::optional<std::uint32_t> leaf(NodeId nic) const {
    for (const LinkId id : topology_.links_from(nic)) {
      if (const auto at = graph_.index_of(topology_.link(id).target)) {
        return at;
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] const std::string& switch_name(std::uint32_t index) const {
    return topology_.node(graph_.switches()[index]).name;
  }

  // A router that looks at all pairs finds every way that there is; one that knows a structure may
  // miss some once cables are broken.
  void try_leaves() {
    if (routing_.fabric().looks_at_all_pairs()) {
      return;
    }
    std::vector<std::uint32_t> number(topology_.node_count(), 0);
    const std::vector<NodeId>& endpoints = routing_.fabric().endpoints();
    for (std::uint32_t index = 0; index < endpoints.size(); ++index) {
      number[endpoints[index].value()] = index;
    }
    std::vector<SwitchPort> leaves;  // One endpoint of each.
    for (const SwitchPort& port : graph_.ports()) {
      if (leaves.empty() || leaves.back().at != port.at) {
        leaves.push_back(port);
      }
    }
    for (const SwitchPort& from : spread(leaves, kMaxLeaves)) {
      for (const SwitchPort& to : spread(leaves, kMaxLeaves)) {
        if (from.at == to.at || graph_.component(from.at) != graph_.component(to.at)) {
          continue;
        }
        const Chooser chooser(cluster_.routing, from.endpoint, to.endpoint, 0,
                              number[to.endpoint.value()]);
        path_.clear();
        if (!routing_.fabric().append_route(from.endpoint, to.endpoint, chooser, path_)) {
          add(from.endpoint, to.endpoint, 1);
        }
      }
    }
  }

  const Cluster& cluster_;
  const Topology& topology_;
  Routing& routing_;
  const SwitchGraph& graph_;
  const ServerKinds& kinds_;
  std::uint32_t labels_;
  std::vector<LinkId> path_;
  std::optional<Unreachable> found_;
};

}  // namespace

std::optional<Unreachable> find_unreachable(const Cluster& cluster, Routing& routing,
                                            const SwitchGraph& graph, const ServerKinds& kinds) {
  return ReachSearch(cluster, routing, graph, kinds).run();
}

std::optional<std::string> describe_unreachable(const Cluster& cluster) {
  Routing routing(cluster.topology, cluster.routing);
  const SwitchGraph graph(cluster.topology);
  const ServerKinds kinds(cluster, graph);
  const auto found = find_unreachable(cluster, routing, graph, kinds);
  if (!found) {
    return std::nullopt;
  }
  return fmt::format("{} and {} cannot reach each other: {}",
                     cluster.topology.node(found->source).name,
                     cluster.topology.node(found->target).name, found->why);
}

}  // namespace trainyard
