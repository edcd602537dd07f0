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

// The traits that tell the templates apart.
struct GridForm {
  bool has_one_dimension = false;
  bool joins_all = false;         // All switches that differ in one coordinate.
  bool wraps = false;             // Dimensions close to rings,
  bool may_choose_wraps = false;  // unless key `wraps` says otherwise.
};

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

void grid_fields(Fields& fields, FabricKeys& keys, const GridForm& form);
// Describes `links` of a grid: a number, or one for each dimension.
inline constexpr Either kGridLinks{Whole{1, kMaxParallelCables},
                                   List<Whole>{{1, kMaxParallelCables}}};

[[nodiscard]] std::unique_ptr<Fabric> read_grid(const FabricContext& context, const GridForm& form);

}  // namespace trainyard
