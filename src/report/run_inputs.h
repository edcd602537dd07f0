// SPDX-License-Identifier: Apache-2.0
// What a run was made of, as its JSON says: so that two results can be compared without the files
// that they came from (cli/compare.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "topology/cluster.h"

namespace trainyard {

struct RunInputs {
  std::vector<std::string> settings = {};  // "key.path=value", as --set had them.
  // Of the cluster's links, by resource (parallelism/resources.h), and of its GPUs: "nic" and
  // "48 GB/s".
  std::vector<std::pair<std::string, std::string>> resources = {};
};

// Settings and links.
[[nodiscard]] RunInputs run_inputs(const Cluster& cluster, std::vector<std::string> settings);

}  // namespace trainyard
