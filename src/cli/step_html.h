// SPDX-License-Identifier: Apache-2.0
// --report of `trainyard step`.
#pragma once

#include "cli/step_request.h"
#include "report/html_report.h"
#include "report/step_report.h"

namespace trainyard {

// With the timeline of the run's graph; of closed forms that of a graph which is run for it.
[[nodiscard]] HtmlReport step_html(const StepRequest& request, const StepInputs& inputs,
                                   const StepRun& run, const StepReport& report);

}  // namespace trainyard
