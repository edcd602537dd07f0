// SPDX-License-Identifier: Apache-2.0
#include "report/steps/imported_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "report/formats/json.h"
#include "report/results/volume_entries.h"

namespace trainyard {
namespace {

std::vector<std::string> notes_of(const ImportedReport& report) {
  const int rank = report.source->graph.present()[report.run->busiest];
  std::vector<std::string> notes{
      fmt::format("parts are those of rank {}, which waits least for others", rank),
      "no tokens, MFU or memory, as the workload does not say what the model is"};
  const auto add = [&](const std::vector<std::string>& more) {
    notes.insert(notes.end(), more.begin(), more.end());
  };
  add(report.source->notes);
  for (const std::string& each : report.source->left_out) {
    notes.push_back("left out: " + each);
  }
  add(report.notes);
  return notes;
}

// Groups with the calls that they make, each counted once: by the first of its ranks in the graph.
Json communicators_of(const OperationGraph& graph) {
  std::vector<std::size_t> calls(graph.communicators().size(), 0);
  std::vector<std::optional<int>> counted(calls.size());  // The rank that counts.
  for (std::uint32_t index = 0; index < graph.operations().size(); ++index) {
    const GraphOperation& operation = graph.operations()[index];
    if (operation.kind == GraphOperationKind::Collective) {
      const std::uint32_t communicator = operation.call.communicator.value();
      const int rank = graph.rank_of(OperationId(index));
      calls[communicator] += counted[communicator].value_or(rank) == rank ? 1 : 0;
      counted[communicator] = counted[communicator].value_or(rank);
    }
  }
  Json all = Json::array();
  for (std::size_t index = 0; index < calls.size(); ++index) {
    const GraphCommunicator& communicator = graph.communicators()[index];
    all.push_back(
        {{"name", communicator.name}, {"ranks", communicator.ranks}, {"calls", calls[index]}});
  }
  return all;
}

// Calls of one kind, by how long they took and were predicted to take once all members were there.
struct CallTimes {
  std::vector<SimTime> recorded;
  std::vector<SimTime> predicted;
};
using CallKinds = std::map<std::tuple<Operation, Bytes, std::size_t>, CallTimes>;

// The recorded member that came last has the shortest time. The n-th call of a
// communicator on one rank is the n-th on every other.
CallKinds kinds_of(const ImportedReport& report) {
  const OperationGraph& graph = report.source->graph;
  std::map<std::pair<std::uint32_t, int>, int> numbers;
  std::map<std::pair<std::uint32_t, int>, RecordedCall> shortest;
  for (const RecordedCall& call : report.source->recorded_calls) {
    const std::uint32_t communicator = graph.operation(call.operation).call.communicator.value();
    const int number = numbers[{communicator, graph.rank_of(call.operation)}]++;
    RecordedCall& best = shortest.try_emplace({communicator, number}, call).first->second;
    best = call.time < best.time ? call : best;
  }
  CallKinds kinds;
  for (const auto& entry : shortest) {
    const RecordedCall& recorded = entry.second;
    const GraphCall& call = graph.operation(recorded.operation).call;
    const std::size_t ranks = graph.communicators()[call.communicator.value()].ranks.size();
    CallTimes& times = kinds[{call.operation, call.size, ranks}];
    const GraphTiming& timing = report.run->result.timings[recorded.operation.value()];
    times.recorded.push_back(recorded.time);
    times.predicted.push_back(timing.end - timing.start);
  }
  return kinds;
}

SimTime middle_of(std::vector<SimTime> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

Cell time_cell(SimTime time) {
  return {fmt::format("{:.1f}", time.microseconds()), time.seconds()};
}

void add_recorded_calls(const ImportedReport& report, Document& document) {
  if (report.source->recorded_calls.empty()) {
    return;
  }
  Table table({{.name = "collective", .key = "operation", .align = Align::Left},
               {.name = "bytes", .key = "bytes"},
               {.name = "ranks", .key = "ranks"},
               {.name = "calls", .key = "calls"},
               {.name = "shortest", .key = "recorded_shortest_s", .unit = "(us)"},
               {.name = "middle", .key = "recorded_median_s", .unit = "(us)"},
               {.name = "predicted", .key = "predicted_median_s", .unit = "(us)"}});
  for (const auto& [kind, times] : kinds_of(report)) {
    table.add_row({Cell::of(std::string(to_string(std::get<Operation>(kind)))),
                   Cell::count(std::get<Bytes>(kind).count()),
                   Cell::count(static_cast<std::int64_t>(std::get<std::size_t>(kind))),
                   Cell::count(static_cast<std::int64_t>(times.recorded.size())),
                   time_cell(*std::ranges::min_element(times.recorded)),
                   time_cell(middle_of(times.recorded)), time_cell(middle_of(times.predicted))});
  }
  document.add_table(
      "Collectives as recorded, with the wait for the last rank that was recorded, "
      "and as predicted",
      std::move(table), Shown::People | Shown::Json, "recorded_calls");
}

}  // namespace

Document document_of(const ImportedReport& report) {
  const OperationGraph& graph = report.source->graph;
  const ImportedFormat format = report.source->format;
  const auto count = [&](GraphOperationKind kind) {
    return std::int64_t{std::ranges::count(graph.operations(), kind, &GraphOperation::kind)};
  };
  const std::int64_t computations = count(GraphOperationKind::Compute);
  const std::int64_t calls = count(GraphOperationKind::Collective);
  const std::int64_t messages = count(GraphOperationKind::Send);
  const SimTime time = report.run->result.finish;
  Document document{.estimates = report.estimates, .notes = notes_of(report), .value_end = 27};
  add_setup(report.setup, document);
  document.heading.back() += std::string(", traffic ") + report.setup.traffic();
  document.heading.push_back(
      fmt::format("{}: {}, {} ranks, {} of them run: {} computations, {} calls, {} messages",
                  report.setup.workload, to_string(format), graph.ranks(), graph.present().size(),
                  computations, calls, messages));
  document.heading.emplace_back();
  document.add("format", std::string(to_string(format)));
  document.add("ranks", std::int64_t{graph.ranks()});
  document.add("ranks_run", static_cast<std::int64_t>(graph.present().size()));
  document.add("computations", computations);
  document.add("calls", calls);
  document.add("messages", messages);
  document.add("traffic", report.setup.traffic(), Shown::Json);
  document.add("compute_scale", report.compute_scale, Shown::Json);
  add_noise(report.setup, document);
  document.add(report.inputs);
  document.add(Figure{.key = "time_s",
                      .cell = {fmt::format("{:.3f}", time.microseconds()), time.seconds()},
                      .label = "time",
                      .unit = "us"});
  const std::size_t busiest = report.run->busiest;
  document.add(Parts{
      .key = "time",
      .whole = time,
      .times = named_parts(report.run->ranks[busiest],
                           [format](StepPart part) { return imported_part_name(format, part); }),
      .unit = TimeUnit::Microseconds,
      .rank = graph.present()[busiest]});
  add_volumes("Bytes on links, by tier", report.volumes, document);
  add_recorded_calls(report, document);
  document.add_detail("communicators", communicators_of(graph));
  return document;
}

}  // namespace trainyard
