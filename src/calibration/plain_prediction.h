// SPDX-License-Identifier: Apache-2.0
// The plain runtime as a predictor: links and latencies, no launch and no protocols.
#pragma once

#include <span>
#include <vector>

#include "calibration/validation.h"

namespace trainyard {

// Ring where it can do the operation, otherwise direct; NCCL_ALGO=Tree makes it a tree. Throws
// ConfigError as run_collective does.
[[nodiscard]] std::vector<PredictedTime> predict_plain(const ValidationCase& item,
                                                       const Cluster& cluster, Operation operation,
                                                       std::span<const Bytes> sizes);

}  // namespace trainyard
