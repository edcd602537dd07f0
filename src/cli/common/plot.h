// SPDX-License-Identifier: Apache-2.0
// Pictures of reports, drawn by tools/plot, which needs Python and matplotlib. They are not needed
// for anything else.
#pragma once

#include <string>

namespace trainyard {

// Throws ConfigError, one line, if `file` does not end in .svg, .png or .pdf, or if tools/plot or
// what it needs is not there: to be found out before a long run.
void check_plot(const std::string& file);

// Draws a report in JSON. Throws ConfigError if tools/plot fails, with its last line.
void write_plot(const std::string& file, const std::string& json);

}  // namespace trainyard
