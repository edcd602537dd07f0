// SPDX-License-Identifier: Apache-2.0
// The options of `trainyard collective --runtime nccl` that other runtimes do not have.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/nccl_options.h"
#include "cli/common/options.h"
#include "collectives/schedule/operation.h"
#include "nccl/timing/timing.h"
#include "nccl/types/types.h"
#include "network/contract/network.h"

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
  // Which engine stands between nodes; none: "ports", those of the event model alone.
  std::optional<Fidelity> fidelity = {};
  std::optional<std::string> profile = {};  // A file instead of configs/nccl/profile.yaml.
};

// "ports", "flow", ...
[[nodiscard]] std::string_view fidelity_name(const NcclRequest& request);

// Those of add_nccl_options, and of how NCCL is called.
[[nodiscard]] Options nccl_run_options();

// Throws ConfigError for operations that NCCL or the event model does not have and for options of
// the other runtime.
[[nodiscard]] NcclRequest read_nccl_request(const OptionReader& reader, Operation operation);

}  // namespace trainyard
