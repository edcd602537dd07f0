// SPDX-License-Identifier: Apache-2.0
// Options of a step about GPUs that do not all compute equally fast.
#pragma once

#include <optional>
#include <string>

#include "cli/common/options.h"
#include "parallelism/graph/graph_jitter.h"
#include "parallelism/run/step_run.h"

namespace trainyard {

// --slow-rank, --jitter, --seed.
[[nodiscard]] Options noise_options();

// Throw ConfigError, one line.
[[nodiscard]] std::optional<SlowRank> read_slow_rank(const OptionReader& reader);
[[nodiscard]] ComputeJitter read_jitter(const OptionReader& reader);

// Describes what makes the step longer than usual, for a note; nothing: nothing does.
[[nodiscard]] std::optional<std::string> describe_noise(const std::optional<SlowRank>& slow,
                                                        const ComputeJitter& jitter);

}  // namespace trainyard
