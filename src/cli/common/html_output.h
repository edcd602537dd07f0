// SPDX-License-Identifier: Apache-2.0
// Where the result of a command goes: its text (--format, --output), and its page (--report,
// report/html/html_report.h).
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include "cli/common/options.h"
#include "report/formats/document.h"
#include "report/html/html_report.h"

namespace trainyard {

// Where the report goes, and the charting library that is built into it.
struct HtmlTarget {
  std::string file;
  std::string library;
};

// Returns the target of --report, if it is given. Refuses before the run what could not be made
// after it: a file that cannot be written, and a charting library that is not there. The library is
// d3, version 3: Debian's libjs-d3, or the file that the variable TRAINYARD_D3 names.
[[nodiscard]] std::optional<HtmlTarget> html_target(const OptionReader& reader);

void write_html(const HtmlTarget& target, const HtmlReport& report);

struct ResultTarget {
  Format format = Format::Table;
  std::optional<std::string> output = {};  // Nothing: to standard output.
  std::optional<HtmlTarget> report = {};
  KeptResult* kept = nullptr;  // OptionReader::kept()
};

// Returns the target of output_options(). Refuses as html_target() does, and one file for both.
[[nodiscard]] ResultTarget result_target(const OptionReader& reader);

// Keeps the document for whoever renders it in other forms, if anybody does. Commands that write
// their results themselves call it.
void keep_result(KeptResult* kept, const Document& document);

// Writes the page, if one is wanted, and the text, and keeps the document where the target says.
// `make_page` where the page has more than the document.
void write_result(const ResultTarget& target, const Document& document, std::ostream& out,
                  const std::function<HtmlReport()>& make_page = {});

}  // namespace trainyard
