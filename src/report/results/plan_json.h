// SPDX-License-Identifier: Apache-2.0
// The JSON form of a plan.
#pragma once

#include <string>

#include "report/results/plan_report.h"

namespace trainyard {

// Everything that was decided, under keys that stay as they are (docs/commands/plan.md).
[[nodiscard]] std::string render_plan_json(const PlanReport& report);

}  // namespace trainyard
