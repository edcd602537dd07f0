// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/traffic_html.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace trainyard {
namespace {

constexpr std::size_t kMaxLines = 8;
constexpr std::size_t kMaxPoints = 1'500;  // The points of a line: more than there are pixels.

constexpr double kWide = 10.0;  // From there on a logarithm is easier to read.

// Values of flows by group.
using Values = std::map<std::uint32_t, std::vector<double>>;

// The share of flows at or below each value, at most kMaxPoints of them.
HtmlLine shares_of(const std::string& name, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  HtmlLine line{.name = name};
  const std::size_t count = values.size();
  const std::size_t every = (count + kMaxPoints - 1) / kMaxPoints;
  for (std::size_t index = 0; index < count; index += every) {
    const std::size_t last = std::min(count - 1, index + every - 1);
    const double share = static_cast<double>(last + 1) / static_cast<double>(count);
    line.points.emplace_back(values[last], share);
  }
  // From nothing.
  line.points.insert(line.points.begin(), {values.front(), 0.0});
  return line;
}

HtmlChart shares_chart(const TrafficSpec& spec, const Values& values, const std::string& title,
                       const std::string& x_label) {
  HtmlChart chart{.title = title,
                  .note = "Share of the flows that were complete at or below each value.",
                  .x_label = x_label,
                  .y_label = "share of flows",
                  .has_steps = true};
  double min = values.begin()->second.front();
  double max = min;
  for (const auto& [group, of_group] : values) {
    if (chart.lines.size() < kMaxLines) {
      chart.lines.push_back(shares_of(spec.groups[group].name, of_group));
    }
    min = std::min(min, *std::min_element(of_group.begin(), of_group.end()));
    max = std::max(max, *std::max_element(of_group.begin(), of_group.end()));
  }
  chart.is_x_log = min > 0.0 && max / min > kWide;
  if (values.size() > kMaxLines) {
    chart.note += fmt::format(" The first {} of {} groups.", kMaxLines, values.size());
  }
  return chart;
}

void add_flows(const TrafficSpec& spec, const TrafficRun& run, HtmlReport& html) {
  Values times;
  Values slowdowns;
  for (const FlowRecord& flow : run.flows) {
    if (!flow.end) {
      continue;
    }
    const SimTime time = *flow.end - flow.start;
    times[flow.group].push_back(time.microseconds());
    if (flow.alone > SimTime()) {
      slowdowns[flow.group].push_back(time / flow.alone);
    }
  }
  if (!times.empty()) {
    html.charts.push_back(
        shares_chart(spec, times, "Completion times of flows", "completion time (us)"));
  }
  if (!slowdowns.empty()) {
    html.charts.push_back(
        shares_chart(spec, slowdowns, "Slowdown of flows", "time over that of the flow alone"));
  }
}

// Adds the chart of slowdowns by decade of sizes, drawn at their lower ends.
void add_sizes(const TrafficSummary& summary, HtmlReport& html) {
  if (summary.all.bins.size() < 2) {
    return;
  }
  HtmlChart chart{
      .title = "Slowdown by size",
      .note = "All flows, in decades of their size, drawn where these begin.",
      .x_label = "size of flows (B)",
      .y_label = "slowdown",
      .is_x_log = true,
      .lines = {{.name = "mean"}, {.name = "median"}, {.name = "99 %"}, {.name = "most"}}};
  for (const SizeBin& bin : summary.all.bins) {
    // The first bin begins at nothing: it is drawn where its last decade does.
    const double size = bin.below ? static_cast<double>(bin.below->count()) / 10.0
                                  : static_cast<double>(bin.min.count());
    const Distribution& slowdown = bin.slowdown;
    chart.lines[0].points.emplace_back(size, slowdown.mean);
    chart.lines[1].points.emplace_back(size, slowdown.p50);
    chart.lines[2].points.emplace_back(size, slowdown.p99);
    chart.lines[3].points.emplace_back(size, slowdown.max);
  }
  html.charts.push_back(std::move(chart));
}

// The greatest value of each of kMaxPoints equal parts of the time.
HtmlLine thinned(HtmlLine line) {
  if (line.points.size() <= kMaxPoints) {
    return line;
  }
  const double first = line.points.front().first;
  const double part = (line.points.back().first - first) / static_cast<double>(kMaxPoints);
  std::vector<std::pair<double, double>> kept;
  double end = first;
  for (const auto& point : line.points) {
    if (kept.empty() || point.first >= end) {
      kept.push_back(point);
      end = point.first + part;
    } else {
      kept.back().second = std::max(kept.back().second, point.second);
    }
  }
  line.points = std::move(kept);
  return line;
}

// Returns the lines that go highest.
std::vector<HtmlLine> highest(std::vector<HtmlLine> lines) {
  const auto max = [](const HtmlLine& line) {
    double value = 0.0;
    for (const auto& point : line.points) {
      value = std::max(value, point.second);
    }
    return value;
  };
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const HtmlLine& a, const HtmlLine& b) { return max(a) > max(b); });
  lines.resize(std::min(lines.size(), kMaxLines));
  for (HtmlLine& line : lines) {
    line = thinned(std::move(line));
  }
  return lines;
}

void add_samples(const Topology& topology, const PacketSamples& samples, HtmlReport& html) {
  std::map<LinkId, HtmlLine> queues;
  for (const QueueSample& sample : samples.queues) {
    HtmlLine& line = queues[sample.link];
    if (line.points.empty()) {
      const Link& link = topology.link(sample.link);
      line.name =
          fmt::format("{} to {}", topology.node(link.source).name, topology.node(link.target).name);
    }
    line.points.emplace_back(sample.time.microseconds(),
                             static_cast<double>(sample.bytes.count()) / 1e3);
  }
  std::map<ConnectionId, HtmlLine> rates;
  for (const RateSample& sample : samples.rates) {
    HtmlLine& line = rates[sample.connection];
    if (line.points.empty()) {
      line.name = fmt::format("{} to {}", topology.node(sample.source).name,
                              topology.node(sample.target).name);
    }
    line.points.emplace_back(sample.time.microseconds(),
                             static_cast<double>(sample.sent.bits_per_second()) / 1e9);
  }
  const auto add = [&](auto& by_id, const char* title, const char* what, const char* label) {
    std::vector<HtmlLine> lines;
    for (auto& [id, line] : by_id) {
      lines.push_back(std::move(line));
    }
    if (lines.empty()) {
      return;
    }
    const std::size_t all = lines.size();
    lines = highest(std::move(lines));
    const std::string note =
        all > lines.size()
            ? fmt::format("The {} {} of {} that go highest.", lines.size(), what, all)
            : fmt::format("All {} {} that were sampled.", all, what);
    html.charts.push_back({.title = title,
                           .note = note,
                           .x_label = "time (us)",
                           .y_label = label,
                           .has_steps = true,
                           .lines = std::move(lines)});
  };
  add(queues, "Queues over time", "ports", "waiting (kB)");
  add(rates, "Rates over time", "connections", "sent (Gb/s)");
}

void add_links(const Topology& topology, const TrafficReport& report, const TrafficRun& run,
               HtmlReport& html) {
  const SimTime makespan = report.summary.makespan;
  const bool is_idle =
      std::ranges::all_of(run.link_use, [](const LinkUse& use) { return use.bytes == Bytes(0); });
  if (is_idle || makespan <= SimTime()) {
    html.links.note = "Nothing crosses a link.";
    return;
  }
  html.links = html_links(topology, run.link_use, makespan);
  html.links.note =
      "Share of the time from the first start to the last end in which links are busy at their "
      "full rate; the busiest link of each pair and kind.";
}

}  // namespace

HtmlReport traffic_html(const Document& document, const TrafficReport& report,
                        const Cluster& cluster, const TrafficSpec& spec, const TrafficRun& run,
                        const std::optional<PacketSamples>& samples) {
  HtmlReport html = html_page(document);
  add_flows(spec, run, html);
  add_sizes(report.summary, html);
  if (samples) {
    add_samples(cluster.topology, *samples, html);
  }
  add_links(cluster.topology, report, run, html);
  return html;
}

}  // namespace trainyard
