// SPDX-License-Identifier: Apache-2.0
// --report of `trainyard sweep`.
#pragma once

#include <optional>

#include "cli/sweep/sweep_file.h"
#include "report/html/html_report.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Makes the page of a table of results: charts of the points that ran, the table, and the inputs
// that all of them share. `cluster` is that of the first point, if there is one; its estimates are
// told.
[[nodiscard]] HtmlReport sweep_html(const SweepSpec& spec, const Table& table,
                                    const std::optional<Cluster>& cluster);

}  // namespace trainyard
