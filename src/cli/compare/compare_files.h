// SPDX-License-Identifier: Apache-2.0
// Two clusters or two workloads, key by key.
#pragma once

#include <string>

#include "report/results/compare_report.h"

namespace trainyard {

// Files, or names in configs/clusters or configs/workloads. Of clusters also what their links come
// to. Throws ConfigError for files that are wrong, and for a cluster beside a workload.
[[nodiscard]] RunComparison compare_files(const std::string& before, const std::string& after);

}  // namespace trainyard
