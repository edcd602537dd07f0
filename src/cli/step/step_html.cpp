// SPDX-License-Identifier: Apache-2.0
#include "cli/step/step_html.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "cli/common/common.h"
#include "parallelism/traffic/link_traffic.h"
#include "report/formats/document.h"
#include "report/steps/step_trace.h"
#include "sim/config_error.h"
#include "sim/trace.h"

namespace trainyard {
namespace {

// About 8 bytes each in the page.
constexpr std::size_t kMaxSpans = 300'000;

// Calls and messages of the graph, those that are alike in one line.
HtmlTable calls_of(const OperationGraph& of, const GraphResult& result, const PartName& part_name) {
  struct Sum {
    std::size_t count = 0;
    SimTime total;
    SimTime longest;
  };
  // The part that the time is counted as, the operation, the ranks and the size.
  using Key = std::tuple<std::string, std::string, std::size_t, Bytes>;
  std::map<Key, Sum> sums;
  for (std::uint32_t index = 0; index < of.operations().size(); ++index) {
    const GraphOperation& operation = of.operations()[index];
    std::string what;
    std::size_t ranks = 2;
    Bytes size = operation.message.size;
    if (operation.kind == GraphOperationKind::Collective &&
        operation.call.operation != Operation::Barrier) {
      what = to_string(operation.call.operation);
      ranks = of.communicators()[operation.call.communicator.value()].ranks.size();
      size = operation.call.size;
    } else if (operation.kind == GraphOperationKind::Send) {
      what = "send";
    } else {
      continue;
    }
    Sum& sum = sums[{std::string(part_name(operation.part)), what, ranks, size}];
    const GraphTiming timing = result.timings[index];
    ++sum.count;
    sum.total += timing.end - timing.start;
    sum.longest = std::max(sum.longest, timing.end - timing.start);
  }
  Table table({{.name = "for", .key = "for", .align = Align::Left},
               {.name = "operation", .key = "operation", .align = Align::Left},
               {.name = "ranks", .key = "ranks"},
               {.name = "size", .key = "size"},
               {.name = "calls", .key = "calls"},
               {.name = "together", .key = "together"},
               {.name = "mean", .key = "mean"},
               {.name = "longest", .key = "longest"}});
  std::vector<std::pair<Key, Sum>> longest_first(sums.begin(), sums.end());
  std::ranges::stable_sort(longest_first, std::greater(),
                           [](const auto& each) { return each.second.total; });
  for (const auto& [key, sum] : longest_first) {
    const auto& [part, what, ranks, size] = key;
    table.add_row({Cell::of(part), Cell::of(what), Cell::count(ranks), Cell::of(short_size(size)),
                   Cell::count(sum.count), Cell::of(short_time(sum.total)),
                   Cell::of(short_time(
                       SimTime(sum.total.picoseconds() / static_cast<std::int64_t>(sum.count)))),
                   Cell::of(short_time(sum.longest))});
  }
  return {
      .title = "Collectives and messages",
      .note = fmt::format("On the {} of the timeline, from when one is ready to its end; sizes as "
                          "nccl-tests counts them.",
                          counted(static_cast<int>(of.present().size()), "rank")),
      .table = std::move(table)};
}

std::string operations_note(const OperationGraph& of) {
  const std::size_t folded = static_cast<std::size_t>(of.ranks()) / of.present().size();
  return fmt::format(
      "{} operations{}.", of.operations().size(),
      folded > 1 ? fmt::format(" on {}, each for {} that do the same",
                               counted(static_cast<int>(of.present().size()), "rank"), folded)
                 : "");
}

void add_note(const std::string& note, HtmlTimeline& timeline) {
  timeline.note = timeline.note.empty() ? note : note + " " + timeline.note + ".";
}

void add_graph(const StepGraphRun& graph, bool is_of_run, HtmlReport& html) {
  TraceRecorder recorder;
  record_step(graph, recorder);
  html.timeline = html_timeline(recorder, kMaxSpans);
  const OperationGraph& of = graph.lowered.graph;
  std::string note = operations_note(of);
  if (!is_of_run) {
    note += fmt::format(
        " The figures above are by closed forms, which have no timeline; this one is by --method "
        "graph, whose step takes {}.",
        short_time(graph.step.time));
  }
  add_note(note, html.timeline);
  html.tables.insert(html.tables.begin(),
                     calls_of(of, graph.run, [](StepPart part) { return to_string(part); }));
}

void add_links(const Cluster& cluster, const std::vector<LinkTraffic>& traffic, SimTime time,
               HtmlReport& html) {
  html.links = html_links(cluster.topology, traffic, time);
  html.links.note =
      traffic.empty()
          ? "Nothing crosses a link."
          : "Share of the step in which links are busy at their full rate, all groups counted "
            "with their bytes of a step as rings and messages on their routes; the busiest link "
            "of each pair and kind. Strips of a server are its own links, by kind.";
}

void add_timeline(const StepRequest& request, const Inputs& inputs, const StepRun& run,
                  HtmlReport& html) {
  if (run.graph) {
    add_graph(*run.graph, true, html);
    return;
  }
  if (run.servers) {
    html.timeline.note = "None: not drawn for parameter servers.";
    return;
  }
  StepRequest other = request;
  other.method = StepMethod::Graph;
  try {
    add_graph(*run_step_inputs(other, inputs).graph, false, html);
  } catch (const ConfigError& problem) {
    html.timeline.note = fmt::format(
        "None: closed forms have no timeline, and a graph cannot be run: {}", problem.what());
  }
}

}  // namespace

HtmlReport step_html(const StepRequest& request, const Inputs& inputs, const StepRun& run,
                     const std::optional<std::vector<LinkTraffic>>& traffic,
                     const Document& document) {
  const Cluster& cluster = inputs.machine.cluster;
  HtmlReport html = html_page(document);
  add_timeline(request, inputs, run, html);
  if (run.servers) {
    html.links.note = "Links are not counted for parameter servers.";
  } else if (traffic) {
    add_links(cluster, *traffic, run.step.time, html);
    html.links.note +=
        run.plan.offload.any() ? " Copies to and from the host are not counted." : "";
  } else {
    html.links.note = fmt::format("Links are not counted for more than {} GPUs.", kMaxCountedRanks);
  }
  return html;
}

HtmlReport graph_html(const OperationGraph& graph, const GraphResult& result,
                      const PartName& part_name, const Document& document) {
  HtmlReport html = html_page(document);
  TraceRecorder recorder;
  record_graph(graph, result, recorder);
  html.timeline = html_timeline(recorder, kMaxSpans);
  add_note(operations_note(graph), html.timeline);
  html.tables.insert(html.tables.begin(), calls_of(graph, result, part_name));
  return html;
}

HtmlReport lowered_html(const StepRequest& request, const LoweredJob& job, const LoweredRun& run,
                        const Document& document) {
  HtmlReport html = graph_html(run.graph, run.result, job.part_name, document);
  const Cluster& cluster = job.machine.cluster;
  if (const auto traffic =
          counted_traffic(request, cluster, run.graph, job.machine.nccl, job.part_name)) {
    add_links(cluster, *traffic, run.step.time, html);
  } else {
    html.links.note = fmt::format("Links are not counted for more than {} GPUs.", kMaxCountedRanks);
  }
  return html;
}

}  // namespace trainyard
