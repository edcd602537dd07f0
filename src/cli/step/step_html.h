// SPDX-License-Identifier: Apache-2.0
// --report of `trainyard step`.
#pragma once

#include <functional>
#include <string_view>

#include "cli/step/step_request.h"
#include "report/html/html_report.h"

namespace trainyard {

struct Document;

// The page of a step's document, with the timeline of the run's graph. Closed forms have none: the
// page then has that of a graph which is run for it. `traffic`: see counted_traffic().
[[nodiscard]] HtmlReport step_html(const StepRequest& request, const Inputs& inputs,
                                   const StepRun& run,
                                   const std::optional<std::vector<LinkTraffic>>& traffic,
                                   const Document& document);

// The page of a graph that ran, without its links: of a workload of another tool.
using PartName = std::function<std::string_view(StepPart part)>;
[[nodiscard]] HtmlReport graph_html(const OperationGraph& graph, const GraphResult& result,
                                    const PartName& part_name, const Document& document);

// The same of a workload that has no closed forms.
[[nodiscard]] HtmlReport lowered_html(const StepRequest& request, const LoweredJob& job,
                                      const LoweredRun& run, const Document& document);

}  // namespace trainyard
