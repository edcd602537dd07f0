// SPDX-License-Identifier: Apache-2.0
#include "report/steps/imported_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>

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

// Groups with the calls that they make, each counted once.
Json communicators_of(const OperationGraph& graph) {
  std::vector<std::size_t> calls(graph.communicators().size(), 0);
  for (const GraphMeeting& meeting : meetings_of(graph).meetings) {
    const GraphOperation& operation = graph.operation(meeting.members.front());
    if (operation.kind == GraphOperationKind::Collective) {
      ++calls[operation.call.communicator.value()];
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
  document.add_detail("communicators", communicators_of(graph));
  return document;
}

}  // namespace trainyard
