// SPDX-License-Identifier: Apache-2.0
// --costs and --prices, of commands whose results have energy and cost when asked.
#pragma once

#include <optional>
#include <string>

#include "cli/common/options.h"
#include "topology/cluster/cluster.h"
#include "topology/server/part_costs.h"

namespace trainyard {

struct CostRequest {
  std::optional<std::string> prices = {};  // A file.
};

[[nodiscard]] Options cost_options();
// Nothing if neither is given.
[[nodiscard]] std::optional<CostRequest> read_cost_options(const OptionReader& reader);

// Watts that are shipped, and the user's prices and watts. Throws ConfigError with the place of the
// mistake, also for a part that neither the catalogue nor the cluster has.
[[nodiscard]] ClusterCosts load_costs(const CostRequest& request, const Cluster& cluster);

}  // namespace trainyard
