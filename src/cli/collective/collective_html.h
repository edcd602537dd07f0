// SPDX-License-Identifier: Apache-2.0
// --report of `trainyard collective`.
#pragma once

#include <optional>

#include "cli/collective/collective_inputs.h"
#include "cli/collective/collective_request.h"
#include "collectives/run/run.h"
#include "report/html/html_report.h"
#include "report/results/collective_report.h"

namespace trainyard {

// `job` is of the plain runtime, at the largest size: what timeline and links are of. Without one
// there is neither.
[[nodiscard]] HtmlReport collective_html(const CollectiveReport& report, const Cluster& cluster,
                                         const std::optional<CollectiveJob>& job);

}  // namespace trainyard
