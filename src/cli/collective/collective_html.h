// SPDX-License-Identifier: Apache-2.0
// --report of `trainyard collective`.
#pragma once

#include <functional>

#include "cli/collective/collective_groups.h"
#include "cli/collective/collective_nccl.h"
#include "report/formats/document.h"
#include "report/html/html_report.h"
#include "report/results/collective_report.h"
#include "sim/trace.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Timeline and links are those of `show` (CollectiveOutcome).
[[nodiscard]] HtmlReport collective_html(const Document& document, const CollectiveReport& report,
                                         const Cluster& cluster,
                                         const std::function<ShownRun(TraceRecorder&)>& show);
[[nodiscard]] HtmlReport groups_html(const Document& document, const GroupsOutcome& outcome);

}  // namespace trainyard
