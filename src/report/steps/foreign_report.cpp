// SPDX-License-Identifier: Apache-2.0
#include "report/steps/foreign_report.h"

#include <spdlog/fmt/fmt.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "report/formats/json.h"
#include "sim/check.h"

namespace trainyard {
namespace {

constexpr std::string_view kNotReported =
    "no tokens, MFU or memory, as the workload does not say what the model is";

// What the graph has, and what its ranks send.
struct Contents {
  std::size_t computations = 0;
  std::size_t calls = 0;
  std::size_t messages = 0;
};

Contents contents_of(const OperationGraph& graph) {
  Contents contents;
  for (const GraphOperation& operation : graph.operations()) {
    switch (operation.kind) {
      case GraphOperationKind::Compute:
        ++contents.computations;
        break;
      case GraphOperationKind::Collective:
        ++contents.calls;
        break;
      case GraphOperationKind::Send:
        ++contents.messages;
        break;
      case GraphOperationKind::Host:
      case GraphOperationKind::Receive:
        break;
    }
  }
  return contents;
}

struct NamedPart {
  std::string name;
  SimTime time;
};

std::vector<NamedPart> foreign_parts(const ForeignReport& report) {
  std::vector<NamedPart> parts;
  const StepParts& busiest = report.run->ranks[report.run->busiest];
  for (std::size_t index = 0; index < kStepParts; ++index) {
    const auto part = static_cast<StepPart>(index);
    const std::string_view name = foreign_part_name(report.source->format, part);
    CHECK(!name.empty() || busiest[part] == SimTime(), "a part of this format has a name");
    if (!name.empty()) {
      parts.push_back({.name = std::string(name), .time = busiest[part]});
    }
  }
  return parts;
}

std::vector<std::string> notes_of(const ForeignReport& report) {
  std::vector<std::string> notes{std::string(kNotReported)};
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

std::string foreign_text(const ForeignReport& report) {
  const OperationGraph& graph = report.source->graph;
  const Contents contents = contents_of(graph);
  const SimTime time = report.run->result.finish;
  std::string text = fmt::format(
      "# Simulated by Trainyard: cluster {}, {} GPUs, runtime {}{}, traffic {}\n"
      "# {}: {}, {} ranks, {} of them run: {} computations, {} calls, {} messages\n#\n",
      report.cluster, report.gpus, report.runtime,
      report.fidelity.empty() ? "" : ", fidelity " + report.fidelity, report.traffic,
      report.workload, to_string(report.source->format), graph.ranks(), graph.present().size(),
      contents.computations, contents.calls, contents.messages);
  text += fmt::format("time         {:>14.3f} us\n\n", time.microseconds());
  Table table(
      {{.name = "part", .key = "part", .align = Align::Left, .unit = "", .min_width = 12},
       {.name = "time", .key = "time_us", .align = Align::Right, .unit = "(us)", .min_width = 13},
       {.name = "share", .key = "share", .align = Align::Right, .unit = "(%)", .min_width = 7}});
  for (const NamedPart& part : foreign_parts(report)) {
    if (part.time > SimTime()) {
      const double share = 100.0 * (part.time / time);
      table.add_row({Cell::of(part.name),
                     {fmt::format("{:.3f}", part.time.microseconds()), part.time.microseconds()},
                     {fmt::format("{:.2f}", share), share}});
    }
  }
  text += render_text(table);
  text += fmt::format("# Note: parts are those of rank {}, which waits least for others\n",
                      graph.present()[report.run->busiest]);
  for (const std::string& note : notes_of(report)) {
    text += "# Note: " + note + "\n";
  }
  return text;
}

std::string foreign_csv(const ForeignReport& report) {
  std::vector<Column> columns;
  std::vector<Cell> cells;
  const auto add = [&](const std::string& key, Cell cell) {
    columns.push_back({.name = key, .key = key, .align = Align::Right, .unit = "", .min_width = 0});
    cells.push_back(std::move(cell));
  };
  add("cluster", Cell::of(report.cluster));
  add("workload", Cell::of(report.workload));
  add("format", Cell::of(std::string(to_string(report.source->format))));
  add("ranks", Cell::of(std::int64_t{report.source->graph.ranks()}));
  add("time_s", {"", report.run->result.finish.seconds()});
  for (const NamedPart& part : foreign_parts(report)) {
    add(part.name + "_s", {"", part.time.seconds()});
  }
  Table table(std::move(columns));
  table.add_row(std::move(cells));
  return render_csv(table);
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

std::string foreign_json(const ForeignReport& report) {
  const OperationGraph& graph = report.source->graph;
  const Contents contents = contents_of(graph);
  Json root;
  root["cluster"] = report.cluster;
  root["gpus"] = report.gpus;
  root["workload"] = report.workload;
  root["format"] = std::string(to_string(report.source->format));
  root["ranks"] = graph.ranks();
  root["ranks_run"] = graph.present().size();
  root["computations"] = contents.computations;
  root["calls"] = contents.calls;
  root["messages"] = contents.messages;
  root["runtime"] = report.runtime;
  if (!report.fidelity.empty()) {
    root["fidelity"] = report.fidelity;
  }
  root["traffic"] = report.traffic;
  root["compute_scale"] = report.compute_scale;
  root["time_s"] = report.run->result.finish.seconds();
  root["time_ps"] = report.run->result.finish.picoseconds();
  root["breakdown_rank"] = graph.present()[report.run->busiest];
  for (const NamedPart& part : foreign_parts(report)) {
    root["breakdown_s"][part.name] = part.time.seconds();
  }
  for (const NamedPart& part : foreign_parts(report)) {
    root["breakdown_ps"][part.name] = part.time.picoseconds();
  }
  root["communicators"] = communicators_of(graph);
  root["notes"] = notes_of(report);
  return to_text(root);
}

}  // namespace

std::string render(const ForeignReport& report, Format format) {
  switch (format) {
    case Format::Csv:
      return foreign_csv(report);
    case Format::Json:
      return foreign_json(report);
    case Format::Table:
      break;
  }
  return foreign_text(report);
}

}  // namespace trainyard
