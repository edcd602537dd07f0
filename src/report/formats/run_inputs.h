// SPDX-License-Identifier: Apache-2.0
// Describes the inputs of a run, as its JSON says: so that two results can be compared without the
// files that they came from (cli/compare/compare.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "topology/cluster/cluster.h"

namespace trainyard {

struct RunInputs {
  std::vector<std::string> settings = {};  // "key.path=value", as --set had them.
  // Other options that decide the machine or its software: "nodes" and "2".
  std::vector<std::pair<std::string, std::string>> options = {};
  // Rates of the cluster's links, by resource (parallelism/run/resources.h), and of its GPUs: "nic"
  // and "48 GB/s".
  std::vector<std::pair<std::string, std::string>> resources = {};
};

// Settings and links.
[[nodiscard]] RunInputs run_inputs(const Cluster& cluster, std::vector<std::string> settings);

}  // namespace trainyard
