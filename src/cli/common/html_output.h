// SPDX-License-Identifier: Apache-2.0
// --report: a result as an HTML file (report/html/html_report.h).
#pragma once

#include <optional>
#include <string>

#include "cli/common/options.h"
#include "report/html/html_report.h"

namespace trainyard {

// Where the report goes, and the charting library that is built into it.
struct HtmlTarget {
  std::string file;
  std::string library;
};

[[nodiscard]] Options report_options();

// Returns the target of --report, if it is given. Refuses before the run what could not be made
// after it: a file that cannot be written, and a charting library that is not there. The library is
// d3, version 3: Debian's libjs-d3, or the file that the variable TRAINYARD_D3 names.
[[nodiscard]] std::optional<HtmlTarget> html_target(const OptionReader& reader);

void write_html(const HtmlTarget& target, const HtmlReport& report);

}  // namespace trainyard
