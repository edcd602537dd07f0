// SPDX-License-Identifier: Apache-2.0
// Bounds what a fabric carries at most, whatever paths its switches choose.
//
// A region of tier t is a set of switches of tiers up to t that are joined without others: of tier
// 0 a leaf, of tier 1 a pod. All links that lead out of it, to tier t + 1, are one cut, as are
// those that lead in, and the ports of a NIC; what crosses a cut cannot be faster than its links
// together. Links between switches of one tier (grids, dragonflies) are in no cut.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "network/sharing/load_sharing.h"
#include "topology/graph/switch_graph.h"
#include "topology/graph/topology.h"

namespace trainyard {

[[nodiscard]] bool is_between_switches(const Topology& topology, LinkId id);
// Returns the part of the load on all other links.
[[nodiscard]] Load without_fabric(const Topology& topology, const Load& load);

class FabricCuts {
 public:
  // `topology` must outlive this.
  explicit FabricCuts(const Topology& topology);

  // Returns how fast a load can go, in bit/s for each unit of weight, whichever of the equally good
  // ways through the fabric its connections were put on: the least of all cuts and of all links
  // inside servers. Infinite for one that is on none.
  [[nodiscard]] double rate(const Load& load) const;

 private:
  // Tier, region in it, and whether its links lead out; of an endpoint, no tier and its NodeId.
  using Cut = std::tuple<std::optional<std::uint32_t>, std::uint32_t, bool>;

  [[nodiscard]] std::optional<Cut> cut_of(LinkId id) const;

  const Topology& topology_;
  SwitchGraph graph_;
  std::vector<std::vector<std::uint32_t>> regions_;  // Regions by tier, then switch.
  std::map<Cut, double> bits_per_second_;
};

}  // namespace trainyard
