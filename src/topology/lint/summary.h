// SPDX-License-Identifier: Apache-2.0
// Summarises a cluster for a person at a glance.
#pragma once

#include <string>
#include <vector>

#include "topology/cluster/cluster.h"

namespace trainyard {

struct SummaryRow {
  std::string section;
  std::string item;
  std::string value;
};

// Devices by kind, links by kind and rate, the load on leaf switches, cuts and tiers of the fabric,
// two routes hop by hop (from rank 0 to rank 1 and to the first GPU of the last server), and what
// the linter says. Sections are contiguous.
[[nodiscard]] std::vector<SummaryRow> summarise(const Cluster& cluster);

}  // namespace trainyard
