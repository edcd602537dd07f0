// SPDX-License-Identifier: Apache-2.0
// The fabric reduced to its switches: parallel links merged, endpoints kept as what they inject.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sim/ids.h"
#include "topology/graph/topology.h"

namespace trainyard {

// All links of one direction between two switches.
struct SwitchEdge {
  std::uint32_t source = 0;  // Index of a switch.
  std::uint32_t target = 0;
  std::uint32_t links = 0;
  std::int64_t bits_per_second = 0;
};

// All links between an endpoint (a NIC, or a GPU in the fabric) and one switch.
struct SwitchPort {
  NodeId endpoint;
  std::uint32_t at = 0;              // Index of the switch.
  std::int64_t bits_per_second = 0;  // From the endpoint to the switch.
};

class SwitchGraph {
 public:
  explicit SwitchGraph(const Topology& topology);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(switches_.size()); }
  // Returns the switches in order of id.
  [[nodiscard]] const std::vector<NodeId>& switches() const { return switches_; }
  [[nodiscard]] std::optional<std::uint32_t> index_of(NodeId node) const;
  // The edges, sorted by source, then target.
  [[nodiscard]] const std::vector<SwitchEdge>& edges() const { return edges_; }
  [[nodiscard]] std::span<const SwitchEdge> edges_from(std::uint32_t index) const {
    return std::span(edges_).subspan(offsets_[index], offsets_[index + 1] - offsets_[index]);
  }
  // The ports, sorted by switch, then endpoint.
  [[nodiscard]] const std::vector<SwitchPort>& ports() const { return ports_; }
  // Hops from the nearest switch with an endpoint: 0 for leaves; none where there is no way.
  [[nodiscard]] std::optional<std::uint32_t> tier(std::uint32_t index) const;
  // The switches with an endpoint.
  [[nodiscard]] std::vector<std::uint32_t> leaves() const;
  // Switches of one component are joined, whatever the direction of the links.
  [[nodiscard]] std::uint32_t component(std::uint32_t index) const { return components_[index]; }

 private:
  void collect(const Topology& topology);
  void find_tiers();

  std::vector<NodeId> switches_;
  std::vector<std::uint32_t> index_of_node_;
  std::vector<SwitchEdge> edges_;
  std::vector<std::uint32_t> offsets_;
  std::vector<SwitchPort> ports_;
  std::vector<std::uint32_t> tiers_;
  std::vector<std::uint32_t> components_;
};

// Returns for each of `switches` switches the first of those that it is joined with by the edges
// for which `joins` holds, whatever their direction.
[[nodiscard]] std::vector<std::uint32_t> switch_regions(
    std::uint32_t switches, std::span<const SwitchEdge> edges,
    const std::function<bool(const SwitchEdge&)>& joins);

}  // namespace trainyard
