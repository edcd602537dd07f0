// SPDX-License-Identifier: Apache-2.0
// A workload file with another plan.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "parallelism/model/parallel_plan.h"

namespace trainyard {

// The text of a workload file that has everything of `file` and `settings` (as load_workload()
// takes them) but the plan and the batch, which are those of `plan`. A model that `file` names by
// its path, or that `settings` change, is written out. `source` says where the plan comes from.
// Throws ConfigError as load_workload().
[[nodiscard]] std::string workload_with_plan(const std::filesystem::path& file,
                                             const std::filesystem::path& models,
                                             const std::vector<std::string>& settings,
                                             const ParallelPlan& plan, const std::string& source);

}  // namespace trainyard
