// SPDX-License-Identifier: Apache-2.0
// Switches at coordinates, or chips that route themselves: torus, mesh, HyperX
// (docs/inputs/clusters.md).
//
// Switch (x0, x1, ...) has number x0 + k0 (x1 + k1 (...)). In a torus or mesh it is joined to its
// neighbours in each dimension, in a HyperX to all switches that differ from it in one coordinate
// (Ahn et al., HyperX: topology, routing, and packaging of efficient large-scale networks, 2009).
// Endpoint e, server by server, hangs off switch e / endpoints_per_switch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "topology/fabric/fabric.h"

namespace trainyard {

enum class GridTemplate : std::uint8_t { Torus, Mesh, Ring, HyperX, Full };

struct GridSpec {
  std::vector<int> shape;
  // A dimension of one or two switches never wraps: the wrap would repeat the link that is there.
  std::vector<bool> wraps;
  bool joins_all = false;
  std::vector<int> links;  // Between two neighbours, by dimension.
  int endpoints_per_switch = 1;
  bool attaches_gpus = false;
  std::optional<SwitchSpec> part;  // None: the router is part of the chip.
  LinkSpec trunk;                  // One link between neighbours.
  SimTime host_flight;             // Of the cables of the endpoints.

  [[nodiscard]] std::uint32_t switches() const;
  // Links between the two neighbours that one coordinate of a switch has in a dimension.
  [[nodiscard]] int ports_of(std::size_t dimension, int coordinate) const;
};

[[nodiscard]] GridSpec read_grid_spec(const FabricContext& context, GridTemplate layout);

[[nodiscard]] std::unique_ptr<Fabric> read_torus(const FabricContext& context);
[[nodiscard]] std::unique_ptr<Fabric> read_mesh(const FabricContext& context);
[[nodiscard]] std::unique_ptr<Fabric> read_ring(const FabricContext& context);
[[nodiscard]] std::unique_ptr<Fabric> read_hyperx(const FabricContext& context);
[[nodiscard]] std::unique_ptr<Fabric> read_full(const FabricContext& context);

}  // namespace trainyard
