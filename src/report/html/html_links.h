// SPDX-License-Identifier: Apache-2.0
// The use of links on a drawing of the cluster that stays readable: each server and each switch of
// the fabric is a unit, links between two units are one edge, and links within a server are a
// figure of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "parallelism/traffic/link_traffic.h"
#include "sim/units.h"
#include "topology/graph/topology.h"

namespace trainyard {

struct HtmlUnit {
  std::string name;
  int level = 0;  // 0: servers; switches from 1, their tier and one; NVSwitches of racks the same.
  struct Inside {
    std::string resource;  // "nvlink"
    double busiest = 0.0;  // Share of the time.
    double mean = 0.0;
  };
  std::vector<Inside> inside = {};
};

// An edge between two units; `forth` and `back` are of the busiest link in each direction.
struct HtmlEdge {
  int from = 0;
  int to = 0;
  double forth = 0.0;
  double back = 0.0;
  int links = 0;  // In the direction with more.
};

struct HtmlLinks {
  std::string note = {};
  std::vector<HtmlUnit> units = {};  // Units that any traffic passes.
  std::vector<HtmlEdge> edges = {};
};

// Draws traffic in a run of that time, which is positive.
[[nodiscard]] HtmlLinks html_links(const Topology& topology, std::span<const LinkTraffic> traffic,
                                   SimTime time);

}  // namespace trainyard
