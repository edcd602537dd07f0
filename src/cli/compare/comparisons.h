// SPDX-License-Identifier: Apache-2.0
// Results of steps and collectives in JSON, compared with each other or with a trace, and clusters
// or workloads, key by key.
#pragma once

#include <string>

#include "report/results/compare_report.h"

namespace trainyard {

// Both of steps, or both of collectives. Throws ConfigError for what is no such result, and for
// parts that do not add up to their time.
[[nodiscard]] RunComparison compare_results(const std::string& before, const std::string& after);

// A step with a trace of `steps` steps of one of its ranks: computation, traffic that shows, waits.
[[nodiscard]] RunComparison compare_with_trace(const std::string& result, const std::string& trace,
                                               int steps);

// Files, or names in configs/clusters or configs/workloads. Of clusters also what their links come
// to. Throws ConfigError for files that are wrong, and for a cluster beside a workload.
[[nodiscard]] RunComparison compare_files(const std::string& before, const std::string& after);

}  // namespace trainyard
