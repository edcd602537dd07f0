// SPDX-License-Identifier: Apache-2.0
// The buffer dependencies of a grid's routes, in a graph of linear size.
//
// Routes are products: whatever the way through one dimension, any way through a later one may
// follow. So it is enough to know, for each link and channel of a row (the switches that differ in
// one coordinate), whether a way can begin, go on or end there; what ends in dimension d goes to
// the hub of (switch, phase, d + 1), from where ways begin in d + 1 or later. Rows without a
// missing link are alike. The few pairs that need another order or a search are routed one by one.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "topology/graph/dependency_graph.h"
#include "topology/routing/grid_router.h"

namespace trainyard {

class GridDependencies {
 public:
  GridDependencies(GridRouter& router, DependencyGraph& graph);
  void add();

 private:
  // The turns of ways at one link, by channel within the phase.
  struct Turns {
    bool begins = false;
    std::array<bool, 2> goes_on = {false, false};
    std::array<bool, 2> ends = {false, false};
  };
  // Indexed by place in the row and port of the dimension.
  using Row = std::vector<Turns>;
  struct Broken {
    std::uint32_t from;  // Coordinates.
    std::uint32_t to;
  };

  [[nodiscard]] std::uint32_t hub(std::uint32_t at, int phase, std::size_t dimension) const;
  [[nodiscard]] std::uint32_t switch_at(std::uint32_t row, std::uint32_t dimension,
                                        std::uint32_t place) const;
  [[nodiscard]] std::uint32_t ports_of(std::uint32_t dimension) const;
  [[nodiscard]] bool is_whole(std::uint32_t row, std::uint32_t dimension) const;
  [[nodiscard]] Row turns_of(std::uint32_t row, std::uint32_t dimension,
                             std::vector<Broken>& broken) const;
  // The ways from a switch of the row by a port, of the numbers of links that are taken.
  void enter_ways(Row& turns, std::uint32_t at, std::uint32_t slot,
                  const std::vector<bool>& taken) const;
  [[nodiscard]] bool passes_date_line(std::uint32_t at, std::uint32_t slot) const;
  void add_hubs();
  void add_row(std::uint32_t row, std::uint32_t dimension, const Row& turns);
  void add_turns(const Turns& turns, LinkId link, std::uint32_t at, std::uint32_t slot, int phase,
                 int channel);
  // Pairs of switches whose way in dimension order is broken in this row.
  void add_broken(std::uint32_t row, std::uint32_t dimension, const std::vector<Broken>& broken);
  void add_path(std::uint32_t from, std::uint32_t to);

  GridRouter& router_;
  DependencyGraph& graph_;
  int phases_;  // Phases that routes in dimension order may be in.
  std::uint32_t first_hub_ = 0;
  std::vector<LinkId> path_;
  std::vector<std::uint8_t> path_channels_;
};

}  // namespace trainyard
