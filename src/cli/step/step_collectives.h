// SPDX-License-Identifier: Apache-2.0
// The model that times the collectives of steps, and its options, for all commands that time steps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/common/options.h"
#include "nccl/types/types.h"
#include "parallelism/traffic/cluster_times.h"

namespace trainyard {

struct StepCollectives {
  bool is_nccl = true;                      // Otherwise links and latencies only.
  nccl::Version version = kStepVersion;     // With NCCL.
  std::optional<std::string> profile = {};  // With NCCL: a file of constants.
  std::vector<std::string> notes = {};      // What a reader should know about the version.
};

// --runtime, --nccl-version, --profile.
[[nodiscard]] Options step_collectives_options();
// Throws ConfigError.
[[nodiscard]] StepCollectives read_step_collectives(const OptionReader& reader);

}  // namespace trainyard
