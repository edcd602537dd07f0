// SPDX-License-Identifier: Apache-2.0
// The cluster and the workload of a command line as files of their own.
#pragma once

#include <filesystem>
#include <string>

#include "cli/serve/run_request.h"

namespace trainyard {

// The file in which --nodes, --set and --model are already, with the command line above it that
// gives the same figures by cluster.yaml and workload.yaml. `folder` is the work folder, or empty.
// The form is Cluster or Workload. Throws ConfigError where the command line has none, or names
// what cannot be read.
[[nodiscard]] std::string setup_file(const RunRequest& request,
                                     const std::filesystem::path& folder);

}  // namespace trainyard
