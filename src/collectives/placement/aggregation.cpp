// SPDX-License-Identifier: Apache-2.0
#include "collectives/placement/aggregation.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/check.h"

namespace trainyard {

namespace {

// The ends of the links from `node` that are of this kind, in order of id, each once.
std::vector<NodeId> neighbours(const Topology& topology, NodeId node, NodeKind kind) {
  std::set<NodeId> found;
  for (const LinkId link : topology.links_from(node)) {
    const NodeId target = topology.link(link).target;
    if (topology.node(target).kind == kind) {
      found.insert(target);
    }
  }
  return {found.begin(), found.end()};
}

// The common ones of the neighbours of all `nodes`, of which there is at least one.
std::vector<NodeId> common_neighbours(const Topology& topology, const std::vector<NodeId>& nodes,
                                      NodeKind kind) {
  std::vector<NodeId> common = neighbours(topology, nodes.front(), kind);
  for (const NodeId node : nodes) {
    const std::vector<NodeId> own = neighbours(topology, node, kind);
    std::erase_if(common, [&](NodeId each) { return !std::ranges::binary_search(own, each); });
  }
  return common;
}

// Returns the part of a switch; an NVSwitch whose chips the cluster does not name has its link's.
std::string part_of(const Topology& topology, NodeId id) {
  const Node& node = topology.node(id);
  const std::string& name = node.part == 0 ? node.name : topology.parts()[node.part];
  const bool is_link = node.kind == NodeKind::NvSwitch && node.part != 0 &&
                       node.part == topology.link(topology.links_from(id).front()).spec.part;
  return (is_link ? "NVSwitch of " : "switch ") + name;
}

// Why this switch cannot be a relay; empty if it can.
std::string inability(const Topology& topology, NodeId id) {
  return topology.node(id).in_network_reduction
             ? ""
             : fmt::format("the {} cannot add up in the network", part_of(topology, id));
}

// These fill the plan; they return why the cluster has none, or nothing.
std::string plan_nvls(const Cluster& cluster, SwitchPlan& plan) {
  plan.relays = common_neighbours(cluster.topology, cluster.gpus, NodeKind::NvSwitch);
  return plan.relays.size() != 1 ? "the ranks are not all on one NVSwitch"
                                 : inability(cluster.topology, plan.relays.front());
}

std::string plan_nvls_tree(const Cluster& cluster, SwitchPlan& plan) {
  for (const NodeId gpu : cluster.gpus) {
    const std::vector<NodeId> switches = neighbours(cluster.topology, gpu, NodeKind::NvSwitch);
    if (switches.size() != 1) {
      return "a GPU is not on one NVSwitch";
    }
    if (plan.relays.empty() || plan.relays.back() != switches.front()) {
      plan.relays.push_back(switches.front());
      plan.switch_ranks.push_back(0);
    }
    ++plan.switch_ranks.back();
  }
  if (plan.relays.size() < 2) {
    return "all ranks are on one NVSwitch, for which nvls is";
  }
  for (const NodeId relay : plan.relays) {
    if (std::string reason = inability(cluster.topology, relay); !reason.empty()) {
      return reason;
    }
  }
  return "";
}

std::string check_levels(const Cluster& cluster) {
  return cluster.server_gpus.size() < 2              ? "one server is one level"
         : std::ranges::max(cluster.server_gpus) < 2 ? "servers of one rank are one level"
                                                     : "";
}

std::string plan_grid(const Cluster& cluster, bool on_fabric, SwitchPlan& plan) {
  std::string error;
  plan.grid = rank_grid(cluster, error);
  if (!plan.grid) {
    return error;
  }
  if (on_fabric && (!plan.grid->is_fabric || plan.grid->dimensions.empty())) {
    return "the ranks are not on the switches of a grid";
  }
  return !on_fabric && plan.grid->dimensions.size() < 2
             ? "the ranks form a grid of one dimension, which is a ring"
             : "";
}

class TreePlanner {
 public:
  TreePlanner(const Cluster& cluster, const Routing& routing, SwitchPlan& plan)
      : cluster_(cluster), routing_(routing), plan_(plan) {}

  std::string plan() {
    if (cluster_.server_gpus.size() < 2) {
      return "one server does not use the switches of the fabric";
    }
    find_nics();
    std::size_t trees = 0;
    for (const std::vector<Nic>& nics : nics_) {
      trees = std::max(trees, nics.size());
    }
    for (std::size_t tree = 0; tree < trees && error_.empty(); ++tree) {
      add_tree(tree);
    }
    return error_;
  }

 private:
  struct Nic {
    RankId head;
    std::uint32_t turn;  // Number among the head's NICs: the flow label by which it is used.
    NodeId leaf;
  };

  // Those of each server, each once, by the first GPU that uses it.
  void find_nics() {
    std::uint32_t rank = 0;
    for (const int gpus : cluster_.server_gpus) {
      std::vector<Nic>& own = nics_.emplace_back();
      std::set<NodeId> taken;
      for (int gpu = 0; gpu < gpus; ++gpu, ++rank) {
        const std::vector<NodeId> nics = routing_.nics(cluster_.gpus[rank]);
        for (std::uint32_t turn = 0; turn < nics.size(); ++turn) {
          if (taken.insert(nics[turn]).second) {
            own.push_back({.head = RankId(rank), .turn = turn, .leaf = leaf_of(nics[turn])});
          }
        }
      }
      if (own.empty()) {
        error_ = "a server has no NIC";
      }
    }
  }

  NodeId leaf_of(NodeId nic) {
    std::vector<NodeId> leaves;  // One per cable to a switch.
    for (const LinkId link : cluster_.topology.links_from(nic)) {
      const NodeId target = cluster_.topology.link(link).target;
      if (cluster_.topology.node(target).kind == NodeKind::Switch) {
        leaves.push_back(target);
      }
    }
    if (leaves.size() != 1) {
      error_ = "a NIC has no or several ports on switches, and a tree uses one";
      return nic;
    }
    return leaves.front();
  }

  void add_tree(std::size_t number) {
    AggregationTree tree;
    std::vector<NodeId> leaves;
    for (const std::vector<Nic>& nics : nics_) {
      const Nic& nic = nics[number % nics.size()];
      tree.members.push_back({.head = nic.head, .turn = nic.turn, .leaf = relay(nic.leaf)});
      leaves.push_back(nic.leaf);
    }
    std::ranges::sort(leaves);
    leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
    if (leaves.size() > 1) {
      const std::vector<NodeId> spines =
          common_neighbours(cluster_.topology, leaves, NodeKind::Switch);
      if (spines.empty()) {
        error_ = "no switch joins the leaf switches of a tree";
        return;
      }
      tree.spine = relay(spines[number % spines.size()]);
      tree.trunk = static_cast<std::uint32_t>(number / spines.size());
    }
    plan_.trees.push_back(std::move(tree));
  }

  std::uint32_t relay(NodeId node) {
    const auto [entry, is_new] =
        numbers_.emplace(node, static_cast<std::uint32_t>(plan_.relays.size()));
    if (is_new) {
      plan_.relays.push_back(node);
      const std::string reason = inability(cluster_.topology, node);
      error_ = reason.empty() ? error_ : reason;
    }
    return entry->second;
  }

  const Cluster& cluster_;
  const Routing& routing_;
  SwitchPlan& plan_;
  std::vector<std::vector<Nic>> nics_;       // One list per server.
  std::map<NodeId, std::uint32_t> numbers_;  // Numbers of the relays.
  std::string error_;
};

std::string fill_plan(const Cluster& cluster, const Routing& routing, ClusterNeed need,
                      SwitchPlan& plan) {
  switch (need) {
    case ClusterNeed::Nothing:
      return "";
    case ClusterNeed::OneReducingSwitch:
      return plan_nvls(cluster, plan);
    case ClusterNeed::ReducingSwitches:
      return plan_nvls_tree(cluster, plan);
    case ClusterNeed::ReducingSwitchTrees:
      return TreePlanner(cluster, routing, plan).plan();
    case ClusterNeed::TwoLevels:
      return check_levels(cluster);
    case ClusterNeed::Grid:
      return plan_grid(cluster, false, plan);
    case ClusterNeed::FabricGrid:
      return plan_grid(cluster, true, plan);
  }
  CHECK(false, "unknown need");
}

}  // namespace

std::optional<SwitchPlan> plan_switches(const Cluster& cluster, const Routing& routing,
                                        Algorithm algorithm, std::string& error) {
  SwitchPlan plan;
  error = fill_plan(cluster, routing, algorithm->need, plan);
  return error.empty() ? std::optional(std::move(plan)) : std::nullopt;
}

std::optional<std::string> placement_error(const Cluster& cluster, const Routing& routing,
                                           Algorithm algorithm) {
  std::string error;
  return plan_switches(cluster, routing, algorithm, error) ? std::nullopt : std::optional(error);
}

}  // namespace trainyard
