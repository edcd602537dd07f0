// SPDX-License-Identifier: Apache-2.0
#include "parallelism/operators/step_parts.h"

namespace trainyard {

std::string_view to_string(StepPart part) {
  constexpr std::array<std::string_view, kStepParts> kNames{
      "linear",    "attention", "memory_bound", "casts",  "head", "host",
      "recompute", "tensor",    "context",      "expert", "data", "offload",
      "pipeline",  "bubble",    "optimizer",    "jitter", "fixed"};
  return kNames[static_cast<std::size_t>(part)];
}

}  // namespace trainyard
