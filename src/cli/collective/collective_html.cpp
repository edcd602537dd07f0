// SPDX-License-Identifier: Apache-2.0
#include "cli/collective/collective_html.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace trainyard {
namespace {

constexpr std::size_t kMaxSpans = 150'000;

double bus_bandwidth(const CollectiveRow& row, SimTime time) {
  return time > SimTime() ? row.busbw_gbps * (row.time / time) : 0.0;
}

// NCCL's own choice may be of several algorithms: where each size has one row, they are one curve.
std::vector<HtmlCurve> curves_of(const CollectiveReport& report) {
  bool several = false;
  for (std::size_t index = 1; index < report.rows.size(); ++index) {
    several = several || report.rows[index].size == report.rows[index - 1].size;
  }
  std::vector<HtmlCurve> curves;
  const auto curve = [&](const std::string& name) -> HtmlCurve& {
    const auto found = std::find_if(curves.begin(), curves.end(),
                                    [&](const HtmlCurve& each) { return each.name == name; });
    if (found != curves.end()) {
      return *found;
    }
    curves.push_back({.name = name});
    return curves.back();
  };
  for (const CollectiveRow& row : report.rows) {
    if (row.size == Bytes(0) || row.busbw_gbps <= 0.0) {
      continue;
    }
    const std::string way = row.protocol == "-" || row.protocol.empty()
                                ? row.algorithm
                                : row.algorithm + " " + row.protocol;
    HtmlPoint point{
        .size = row.size,
        .busbw_gbps = row.busbw_gbps,
        .remark = fmt::format("{}, {} channels, {}", way, row.channels, short_time(row.time))};
    if (row.interval) {
      point.band = std::make_pair(bus_bandwidth(row, row.interval->high),
                                  bus_bandwidth(row, row.interval->low));
    }
    curve(several                     ? way
          : report.runtime == "nccl"  ? "NCCL's choice"
          : report.runtime != "plain" ? "choice of " + report.runtime
                                      : way)
        .points.push_back(std::move(point));
    if (row.measured && row.measured->time > SimTime()) {
      curve("measured")
          .points.push_back(
              {.size = row.size, .busbw_gbps = bus_bandwidth(row, row.measured->time)});
    }
  }
  return curves;
}

void add_run(const Cluster& cluster, const std::function<ShownRun(TraceRecorder&)>& show,
             HtmlReport& html) {
  TraceRecorder recorder;
  const ShownRun run = show(recorder);
  html.timeline = html_timeline(recorder, kMaxSpans);
  std::string& note = html.timeline.note;
  note =
      run.what + (note.empty() ? "" : "; " + note) + "." + (run.note.empty() ? "" : " " + run.note);
  if (run.complaint || run.time <= SimTime()) {
    html.links.note = "None: " + run.complaint.value_or("nothing crosses a link") + ".";
    return;
  }
  html.links = html_links(cluster.topology, run.traffic, run.time);
  html.links.note = fmt::format(
      "{}: share of its time in which links are busy at their full rate; the busiest of each pair "
      "and kind.",
      run.what);
}

}  // namespace

HtmlReport collective_html(const Document& document, const CollectiveReport& report,
                           const Cluster& cluster,
                           const std::function<ShownRun(TraceRecorder&)>& show) {
  HtmlReport html = html_page(document);
  html.curves = curves_of(report);
  add_run(cluster, show, html);
  return html;
}

HtmlReport groups_html(const Document& document, const GroupsOutcome& outcome) {
  HtmlReport html = html_page(document);
  if (outcome.show) {
    add_run(*outcome.cluster, outcome.show, html);
  } else {
    html.timeline.note = "None: groups of the event model of NCCL are not recorded together.";
    html.links.note = "None: groups of the event model of NCCL are not drawn on links.";
  }
  return html;
}

}  // namespace trainyard
