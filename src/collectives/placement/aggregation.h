// SPDX-License-Identifier: Apache-2.0
// Tells whether a cluster has what an algorithm needs (ClusterNeed): which of its switches add up
// for an algorithm that reduces in the network, and which grid its ranks form.
//
// - OneReducingSwitch: the NVSwitch that all ranks are on.
// - ReducingSwitches: the NVSwitches that the ranks are on, several, each for ranks in a row.
// - ReducingSwitchTrees: as many trees as the server with most has NICs that its GPUs use. Tree t
//   has the t-th NIC of every server (counted around where a server has fewer), the leaf switches
//   of these and, if they are several, one spine that joins them: for each tree the next one, so
//   that trees share spines only where there are fewer spines than trees; those that share one use
//   different cables to it as long as there are enough.
// Every one of these switches must be a part that reduces in the network (hw/parts/catalogue.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "collectives/placement/rank_grid.h"
#include "topology/cluster/cluster.h"
#include "topology/routing/routing.h"

namespace trainyard {

struct SwitchPlan {
  std::vector<NodeId> relays = {};  // Relay i of the schedule is this switch.
  std::vector<AggregationTree> trees = {};
  std::vector<int> switch_ranks = {};  // For ReducingSwitches: the ranks on each relay.
  std::optional<RankGrid> grid = {};   // For Grid.
};

// Empty for algorithms that need nothing. If the cluster cannot run the algorithm: nothing, and
// `error` says why in a few words.
[[nodiscard]] std::optional<SwitchPlan> plan_switches(const Cluster& cluster,
                                                      const Routing& routing, Algorithm algorithm,
                                                      std::string& error);

// Why this cluster cannot run the algorithm; nothing if it can.
[[nodiscard]] std::optional<std::string> placement_error(const Cluster& cluster,
                                                         const Routing& routing,
                                                         Algorithm algorithm);

}  // namespace trainyard
