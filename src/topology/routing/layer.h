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

#include "topology/graph/topology.h"
#include "topology/routing/chooser.h"
#include "topology/routing/routing.h"

namespace trainyard {

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
  // by which they come to it from other core nodes, those by which they go on, and its distance to
  // the target. Marks in `used`, by link, all links that routes may take. Makes all fields.
  using VisitTurn = std::function<void(std::span<const LinkId> in, std::span<const LinkId> out,
                                       std::uint32_t distance)>;
  void visit_turns(std::vector<bool>& used, const VisitTurn& visit);

  // The endpoints that have a link from or to another node of this layer, ordered by the core node
  // that they hang off: what Static takes for the index of a target.
  [[nodiscard]] const std::vector<NodeId>& endpoints() const { return endpoints_; }
  // The endpoints marked in `wanted`, by node, to which `node` has a link, or which hang off the
  // connected components of the core that it has links into. In order of id.
  [[nodiscard]] std::vector<NodeId> around(NodeId node, const std::vector<bool>& wanted) const;

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
  // Appends a route by the cables that the chooser says, if it does and they are joined.
  [[nodiscard]] bool append_by_cables(NodeId source, NodeId target, const Chooser& chooser,
                                      std::vector<LinkId>& path);
  void append(const Candidate& candidate, const Chooser& chooser, std::vector<LinkId>& path);

  const Topology& topology_;
  std::vector<std::optional<std::uint32_t>> core_of_node_;
  std::vector<Core> cores_;
  std::vector<std::vector<std::uint32_t>> components_;  // Their core nodes.
  std::vector<std::vector<NodeId>> component_endpoints_;
  std::vector<NodeId> endpoints_;
  Lists<Access> up_;           // One list per node.
  Lists<Access> down_;         // One list per node.
  Lists<Direct> direct_;       // One list per node, ordered by target.
  Lists<CoreLink> core_from_;  // One list per core node; other is the target.
  Lists<CoreLink> core_to_;    // One list per core node; other is the source.
  std::vector<LevelLinks> level_links_;
  std::vector<std::unique_ptr<const Field>> fields_;
  std::vector<Group> groups_;
  std::vector<LinkId> group_links_;
  std::map<std::vector<LinkId>, std::uint32_t> group_index_;
};

}  // namespace trainyard
