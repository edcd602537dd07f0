// SPDX-License-Identifier: Apache-2.0
// One layer of the routing problem: endpoints around a core that forwards.
//
// A topology has two layers. Locally the core are NVSwitches, PCIe switches and CPUs, and GPUs and
// NICs are the endpoints; in the fabric the core are switches, and NICs (and GPUs attached
// directly) are the endpoints. In both, a path is one link between two endpoints, or a link up into
// the core, a shortest way through it and a link down. Endpoints never forward, so distances are
// needed only between core nodes: one field per core node that is a destination, over the nodes of
// its connected component, made when it is first needed. A field holds for each node its distance
// and the group of equally good next links; equal groups are stored once. 4,096 GPUs below a
// two-tier Clos of 128 leaves and 64 spines need 128 x 192 entries; on one switch they need none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "topology/link_loads.h"
#include "topology/routing.h"
#include "topology/topology.h"

namespace trainyard {

// The values of many short lists, one list per index, in one array.
template <typename T>
class Lists {
 public:
  Lists() = default;
  // Keeps the order of entries with equal index.
  Lists(std::uint32_t count, const std::vector<std::pair<std::uint32_t, T>>& entries)
      : offsets_(count + 1, 0), values_(entries.size()) {
    for (const auto& [index, value] : entries) {
      ++offsets_[index + 1];
    }
    for (std::uint32_t index = 0; index < count; ++index) {
      offsets_[index + 1] += offsets_[index];
    }
    std::vector<std::uint32_t> next(offsets_.begin(), offsets_.end() - 1);
    for (const auto& [index, value] : entries) {
      values_[next[index]++] = value;
    }
  }
  [[nodiscard]] std::span<const T> of(std::uint32_t index) const {
    return {values_.data() + offsets_[index], offsets_[index + 1] - offsets_[index]};
  }

 private:
  std::vector<std::uint32_t> offsets_;
  std::vector<T> values_;
};

// The links up of a switch, on one level of a fabric: how many, of which so many lead to one switch.
// What static routing needs to know of the levels below (see Chooser).
struct LevelLinks {
  std::uint32_t ways = 1;
  std::uint32_t parallel = 1;
};
// Counts them: the most of any switch, over the most switches above.
class LevelCount {
 public:
  // The targets of the links up of one more switch.
  void add(std::vector<std::uint32_t> targets);
  [[nodiscard]] LevelLinks links() const;

 private:
  std::size_t ways_ = 1;
  std::size_t targets_ = 1;
};

// How one route chooses among equally good links.
class Chooser {
 public:
  // `target_index` numbers the targets as Static sees them, the paths as Spray does. Adaptive looks
  // at `loads`, which must outlive the chooser.
  Chooser(const RoutingOptions& options, NodeId source, NodeId target, std::uint32_t flow_label,
          std::uint32_t target_index, const LinkLoads* loads = nullptr);
  // Takes the link of this number, counted around, at every choice.
  explicit Chooser(std::uint32_t turn) : turn_(turn) {}
  // The choice at `node` among `count` links; `divisor` is the number of paths that the levels
  // below have told apart already, so that Static and Spray go by another digit of the index at
  // each level.
  [[nodiscard]] std::uint32_t pick(NodeId node, std::uint32_t count, std::uint32_t divisor) const;
  // The same above levels whose choices are given by `below`, from the lowest up. A level with w
  // links up, p of them to each switch above, tells index mod w apart by the link and floor of it
  // over p by the switch, so that switch has index mod p left to tell, and floor(index / w).
  [[nodiscard]] std::uint32_t pick_above(NodeId node, std::uint32_t count,
                                         std::span<const LevelLinks> below) const;
  // The choice at the source among `count` pairs of a port of it and a port of the target. It is
  // the sender's and not that of a table in a switch: with Static and Spray flows take turns.
  [[nodiscard]] std::uint32_t pick_ports(NodeId source, std::uint32_t count) const;
  // The same among `links`, of which there is at least one. Adaptive takes the least loaded.
  [[nodiscard]] LinkId pick(NodeId node, std::span<const LinkId> links,
                            std::uint32_t divisor) const;
  [[nodiscard]] LinkId pick_above(NodeId node, std::span<const LinkId> links,
                                  std::span<const LevelLinks> below) const;
  // A number below `count` that the route has drawn, whatever the policy.
  [[nodiscard]] std::uint32_t draw(std::uint32_t count) const;
  // The sum over the links of a path; zero for all but Adaptive.
  [[nodiscard]] std::uint64_t load(std::span<const LinkId> path) const;
  [[nodiscard]] RoutingPolicy policy() const { return policy_; }

 private:
  [[nodiscard]] std::uint32_t hashed(NodeId node, std::uint32_t count) const;
  [[nodiscard]] LinkId pick_least_loaded(NodeId node, std::span<const LinkId> links) const;

  RoutingPolicy policy_ = RoutingPolicy::Static;
  std::uint64_t hash_ = 0;
  std::uint32_t flow_label_ = 0;
  std::uint32_t target_index_ = 0;
  std::optional<std::uint32_t> turn_ = {};
  const LinkLoads* loads_ = nullptr;
};

class Layer {
 public:
  using ForwardsNode = std::function<bool(NodeKind)>;
  // Zero for the links that are not of this layer.
  using LinkCost = std::function<std::uint32_t(LinkKind)>;

  Layer(const Topology& topology, const ForwardsNode& forwards, const LinkCost& cost);

  // The least cost from source to target, if there is a way.
  [[nodiscard]] std::optional<std::uint32_t> cost(NodeId source, NodeId target);
  // Appends the links of a cheapest path; false, and nothing appended, if there is none.
  [[nodiscard]] bool append_route(NodeId source, NodeId target, const Chooser& chooser,
                                  std::vector<LinkId>& path);

  // For each core node that routes to some endpoint may pass, one target after the other: the links
  // by which they come to it from other core nodes and those by which they go on. Marks in `used`,
  // by link, all links that routes may take. Makes all fields.
  using VisitTurn = std::function<void(std::span<const LinkId> in, std::span<const LinkId> out)>;
  void visit_turns(std::vector<bool>& used, const VisitTurn& visit);

  // The endpoints that have a link from or to another node of this layer, ordered by the core node
  // that they hang off: what Static takes for the index of a target.
  [[nodiscard]] const std::vector<NodeId>& endpoints() const { return endpoints_; }
  // The connected components of the core that `node` has links into, each once.
  [[nodiscard]] std::vector<std::uint32_t> components_from(NodeId node) const;
  // Endpoints to which the core of `component` has a link, in order of id.
  [[nodiscard]] const std::vector<NodeId>& endpoints_of(std::uint32_t component) const {
    return component_endpoints_[component];
  }
  // Endpoints to which `node` has a link without the core in between.
  [[nodiscard]] std::vector<NodeId> direct_targets(NodeId node) const;

 private:
  // A way between a node and the core. A core node has one to itself, without a link.
  struct Access {
    std::uint32_t core;  // Index of the core node.
    std::uint32_t cost;
    std::optional<LinkId> link;
  };
  struct Direct {
    NodeId target;
    std::uint32_t cost;
    LinkId link;
  };
  struct CoreLink {
    std::uint32_t other;
    std::uint32_t cost;
    LinkId link;
  };
  // Equally good next links, all between the same two levels, of which `level` is the lower.
  struct Group {
    std::uint32_t offset;
    std::uint32_t count;
    std::uint32_t level;
  };
  struct FieldEntry {
    std::uint32_t distance;
    std::uint32_t group;
  };
  // Distances to one core node, indexed by position in its component.
  using Field = std::vector<FieldEntry>;
  struct Core {
    NodeId node;
    std::uint32_t component;
    std::uint32_t position;   // In its component.
    std::uint32_t level = 0;  // Hops to the nearest core node with an endpoint.
  };
  // A way from an endpoint to another: a direct link, or up and down.
  struct Candidate {
    std::uint32_t cost;
    const Direct* direct;
    const Access* up;
    const Access* down;
  };

  void collect_links(const ForwardsNode& forwards, const LinkCost& cost);
  void find_components();
  void order_endpoints();
  void find_levels();
  template <typename Visit>
  void for_each_candidate(NodeId source, NodeId target, const Visit& visit);
  [[nodiscard]] std::uint32_t core_distance(std::uint32_t from, std::uint32_t to);
  [[nodiscard]] const Field& field(std::uint32_t target);
  [[nodiscard]] Field compute_field(std::uint32_t target);
  [[nodiscard]] std::uint32_t intern_group(std::uint32_t core, const std::vector<CoreLink>& links);
  void visit_turns_to(std::uint32_t target, std::vector<bool>& used, const VisitTurn& visit);
  void append(const Candidate& candidate, const Chooser& chooser, std::vector<LinkId>& path);

  const Topology& topology_;
  std::vector<std::optional<std::uint32_t>> core_of_node_;
  std::vector<Core> cores_;
  std::vector<std::vector<std::uint32_t>> components_;  // Their core nodes.
  std::vector<std::vector<NodeId>> component_endpoints_;
  std::vector<NodeId> endpoints_;
  Lists<Access> up_;           // By node.
  Lists<Access> down_;         // By node.
  Lists<Direct> direct_;       // By node, ordered by target.
  Lists<CoreLink> core_from_;  // By core node; other is the target.
  Lists<CoreLink> core_to_;    // By core node; other is the source.
  std::vector<LevelLinks> level_links_;
  std::vector<std::unique_ptr<const Field>> fields_;
  std::vector<Group> groups_;
  std::vector<LinkId> group_links_;
  std::map<std::vector<LinkId>, std::uint32_t> group_index_;
};

}  // namespace trainyard
