// SPDX-License-Identifier: Apache-2.0
// The use of links on a drawing of the cluster that stays readable: each server and each switch of
// the fabric is a unit, links between two units are one edge, and links within a server are a
// figure of it.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "network/contract/network.h"
#include "parallelism/traffic/link_bytes.h"
#include "sim/units.h"
#include "topology/graph/topology.h"

namespace trainyard {

struct HtmlLinks {
  std::string note = {};
  // Units that any traffic passes: objects of `name`, `level` (0: servers; switches from 1, their
  // tier and one; NVSwitches of racks the same) and `inside`, an array of [resource, busiest, mean]
  // of its own links, as shares of the time.
  nlohmann::ordered_json units = nlohmann::ordered_json::array();
  // [from, to, forth, back, links]: the indices of two units, the share of the time of the busiest
  // link in each direction, and the number of links in the direction with more.
  nlohmann::ordered_json edges = nlohmann::ordered_json::array();
};

// Draws traffic in a run of that time, which is positive.
[[nodiscard]] HtmlLinks html_links(const Topology& topology, std::span<const LinkTraffic> traffic,
                                   SimTime time);
[[nodiscard]] HtmlLinks html_links(const Topology& topology, std::span<const LinkUse> uses,
                                   SimTime time);

}  // namespace trainyard
