// SPDX-License-Identifier: Apache-2.0
// The options of `trainyard collective --runtime nccl` that other runtimes do not have.
#pragma once

#include <optional>
#include <vector>

#include "cli/common/nccl_options.h"
#include "cli/common/options.h"
#include "collectives/schedule/operation.h"
#include "nccl/timing/timing.h"
#include "nccl/types/types.h"

namespace trainyard {

// A row of each size: NCCL's own choice, or what is forced on it.
struct NcclChoice {
  std::optional<nccl::Algorithm> algorithm = {};
  std::optional<nccl::Protocol> protocol = {};
  NcclOptions options = {};  // With NCCL_ALGO and NCCL_PROTO as above.
};

struct NcclRequest {
  std::vector<NcclChoice> choices;  // At least one. They differ in what they force alone.
  nccl::LaunchMode mode = {};
};

// Those of nccl_variables(), and of how NCCL is called.
[[nodiscard]] Options nccl_run_options();

// Throws ConfigError for what NCCL or the event model does not have for an operation.
[[nodiscard]] NcclRequest read_nccl_request(const OptionReader& reader, Operation operation,
                                            nccl::Version version);

}  // namespace trainyard
