// SPDX-License-Identifier: Apache-2.0
// A result as one HTML file that opens without a network: figures, breakdown, timeline, links,
// tables. Style, page and script are in src/report/html and built into the program; the charting
// library (d3) is not part of it and is given as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/formats/table.h"
#include "report/html/html_links.h"
#include "report/html/html_sweep.h"
#include "report/html/html_timeline.h"
#include "sim/units.h"

namespace trainyard {

struct HtmlTable {
  std::string title;
  std::string note;
  Table table;                            // Its texts are shown; of lines no column is.
  std::vector<std::string> remarks = {};  // Lines below it.
};

struct HtmlPoint {
  Bytes size;
  double busbw_gbps = 0.0;
  std::optional<std::pair<double, double>> band = {};  // Least and greatest.
  std::string remark = {};
};

struct HtmlCurve {
  std::string name;
  std::vector<HtmlPoint> points = {};
};

// Lines over one axis.
struct HtmlLine {
  std::string name;
  std::vector<std::pair<double, double>> points = {};  // Points by x, rising.
};

struct HtmlChart {
  std::string title;
  std::string note;
  std::string x_label;
  std::string y_label;
  bool is_x_log = false;   // Then no x is zero or less.
  bool has_steps = false;  // y stays until the next x.
  std::vector<HtmlLine> lines = {};
};

struct HtmlReport {
  std::string title;
  std::string subtitle;
  std::vector<std::pair<std::string, std::string>> summary = {};  // Label and value.
  std::vector<std::pair<std::string, SimTime>> breakdown = {};    // May be empty, as all below.
  std::vector<HtmlCurve> curves = {};
  std::vector<HtmlChart> charts = {};
  HtmlSweep sweep = {};
  HtmlTimeline timeline = {};
  HtmlLinks links = {};
  std::vector<HtmlTable> tables = {};
  std::vector<std::string> notes = {};
};

struct Document;
struct RunInputs;
// Tables of the inputs, key and value, and of the estimates of the cluster, with their sources
// (Document::estimates).
[[nodiscard]] HtmlTable html_inputs(const RunInputs& inputs);
[[nodiscard]] HtmlTable html_estimates(const std::vector<std::string>& lines);

// A document as a page: figures with a label, parts, tables, lines, notes. Without a title it has
// the first line of the heading as such, and the others below it. A command adds what only a page
// has, such as a timeline.
[[nodiscard]] HtmlReport html_page(const Document& document);

struct HtmlTemplate {
  std::string_view style;
  std::string_view body;
  std::string_view script;
};
[[nodiscard]] const HtmlTemplate& html_template();

// The file. `library` is the text of d3, version 3.
[[nodiscard]] std::string render_html(const HtmlReport& report, std::string_view library);

}  // namespace trainyard
