// SPDX-License-Identifier: Apache-2.0
// The request that the command line of `trainyard plan` makes. Everything that can be judged
// without the files is checked here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/common/nccl_options.h"
#include "cli/common/options.h"
#include "collectives/schedule/operation.h"
#include "sim/units.h"

namespace trainyard {

struct PlanRequest {
  std::vector<Operation> operations;
  // One of the two.
  std::optional<std::string> cluster;
  std::optional<std::string> topology_file;
  ClusterOverrides overrides;
  std::optional<int> ranks;  // The first ones; otherwise all.
  NcclOptions nccl = {};
  std::optional<std::string> graph_output;
  std::optional<Bytes> min_size;
  std::optional<Bytes> greatest_size;
  std::optional<int> factor;
  std::string format;  // "table", "json" or "info".
  std::optional<std::string> output;
};

[[nodiscard]] Options plan_options();

// `values` are those of plan_options and "operation". Throws ConfigError.
[[nodiscard]] PlanRequest read_plan_request(const OptionReader& reader);

}  // namespace trainyard
