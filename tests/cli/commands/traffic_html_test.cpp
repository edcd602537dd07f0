// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/commands/traffic_html.h"

#include <algorithm>
#include <string>

#include "support/built_clusters.h"

namespace trainyard {
namespace {

// Flows of two sizes from one host to another, the later the longer; one was never complete.
TrafficRun some_flows(const Cluster& cluster) {
  TrafficRun run;
  for (std::uint32_t index = 0; index < 10; ++index) {
    FlowRecord flow{.start = microseconds(index),
                    .end = microseconds(index + 10 * (index + 1)),
                    .alone = microseconds(10),
                    .size = index < 5 ? kib(1) : mib(1),
                    .source = cluster.gpus[0],
                    .target = cluster.gpus[1],
                    .group = 0,
                    .label = index,
                    .connection = ConnectionId(index)};
    if (index == 9) {
      flow.end.reset();
    }
    run.flows.push_back(flow);
  }
  run.link_use.push_back({.link = LinkId(0), .bytes = mib(1)});
  return run;
}

TrafficSpec one_group() {
  TrafficSpec spec;
  spec.name = "S";
  spec.groups.push_back({.name = "g",
                         .kind = "list",
                         .start = {},
                         .priority = {},
                         .endpoints = {},
                         .pattern = ListedTraffic{}});
  return spec;
}

const HtmlChart& chart_of(const HtmlReport& html, const std::string& title) {
  const auto found = std::find_if(html.charts.begin(), html.charts.end(),
                                  [&](const HtmlChart& chart) { return chart.title == title; });
  REQUIRE(found != html.charts.end());
  return *found;
}

HtmlReport page_of_flows(const std::optional<PacketSamples>& samples) {
  const Cluster cluster = shipped_cluster("fat-tree-k8-100g");
  const TrafficSpec spec = one_group();
  const TrafficRun run = some_flows(cluster);
  const TrafficReport report{.traffic = "S",
                             .cluster = "C",
                             .fidelity = "flow",
                             .routing = "ecmp",
                             .summary = summarise(cluster.topology, spec, run, 5),
                             .notes = {}};
  const Document document = document_of(report, cluster.topology);
  return traffic_html(document, report, cluster, spec, run, samples);
}

}  // namespace

TEST_CASE("the page of traffic has the distribution of its flows, links and tables",
          "[traffic-html]") {
  const HtmlReport html = page_of_flows({});
  const HtmlLine& times = chart_of(html, "Completion times of flows").lines.at(0);
  REQUIRE(times.name == "g");
  REQUIRE(times.points.front().second == 0.0);
  REQUIRE(times.points[1].first == Approx(10.0));
  REQUIRE(times.points[1].second == Approx(1.0 / 9));
  REQUIRE(times.points.back().first == Approx(90.0));
  REQUIRE(times.points.back().second == 1.0);
  REQUIRE(chart_of(html, "Slowdown of flows").lines.at(0).points.back().first == Approx(9.0));
  REQUIRE(chart_of(html, "Slowdown by size").lines.size() == 4);
  REQUIRE(html.charts.size() == 3);
  REQUIRE(!html.links.units.empty());
  REQUIRE(html.tables.size() == 5);
}

TEST_CASE("queues and rates are charts where they were sampled", "[traffic-html]") {
  PacketSamples samples;
  for (std::uint32_t index = 0; index < 5000; ++index) {
    samples.queues.push_back({.time = microseconds(index),
                              .link = LinkId(index % 20),
                              .bytes = Bytes(1000 * (index % 20)),
                              .is_paused = false});
  }
  samples.rates.push_back({.time = microseconds(1),
                           .connection = ConnectionId(3),
                           .source = NodeId(0),
                           .target = NodeId(1),
                           .limit = gigabits_per_second(100),
                           .sent = gigabits_per_second(50)});
  const HtmlReport html = page_of_flows(samples);
  const HtmlChart& queues = chart_of(html, "Queues over time");
  REQUIRE(queues.lines.size() == 8);
  REQUIRE(queues.lines[0].points[0].second == Approx(19.0));
  REQUIRE(queues.lines[7].points[0].second == Approx(12.0));
  REQUIRE(chart_of(html, "Rates over time").lines.at(0).points.at(0).second == Approx(50.0));
}

}  // namespace trainyard
