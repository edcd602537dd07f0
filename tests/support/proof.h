// SPDX-License-Identifier: Apache-2.0
// The proof of a schedule in words.
#pragma once

#include <optional>
#include <string>

#include "collectives/schedule/semantics.h"

namespace trainyard {

// The text of the violation; nothing if the schedule is right.
[[nodiscard]] inline std::optional<std::string> verify(const Schedule& schedule) {
  const std::optional<Violation> violation = find_violation(schedule);
  return violation ? std::optional(violation->text) : std::nullopt;
}

}  // namespace trainyard
