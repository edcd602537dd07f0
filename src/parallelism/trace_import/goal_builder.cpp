// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/goal_builder.h"

#include <spdlog/fmt/fmt.h>

#include <map>
#include <utility>

namespace trainyard {

GoalBuilder::GoalBuilder(int ranks)
    : workload_({.format = ImportedFormat::Goal, .graph = OperationGraph(ranks)}) {}

void GoalBuilder::open_rank(int rank) {
  rank_ = rank;
  streams_ = {};
}

OperationId GoalBuilder::add_calc(int cpu, GraphName name, SimTime time) {
  std::optional<StreamId>& stream = streams_.cpus[static_cast<std::size_t>(cpu)];
  if (!stream) {
    stream = workload_.graph.add_stream(rank_, fmt::format("cpu {}", cpu), StreamOrder::Ready);
  }
  return workload_.graph.add_compute(*stream, name, StepPart::Linear, time);
}

StreamId GoalBuilder::stream(std::optional<StreamId>& known, const char* name) {
  if (!known) {
    known = workload_.graph.add_stream(rank_, name, StreamOrder::Free);
  }
  return *known;
}

OperationId GoalBuilder::add_message(bool sends, GraphName name, const GraphMessage& message,
                                     bool is_placed) {
  placed_ += is_placed ? 1 : 0;
  OperationGraph& graph = workload_.graph;
  return sends ? graph.add_send(stream(streams_.send, "send"), name, StepPart::Pipeline, message)
               : graph.add_receive(stream(streams_.receive, "receive"), name, StepPart::Pipeline,
                                   message);
}

// An operation whose start others wait for gets an operation of no time before it, which waits
// for all that it waits for.
void GoalBuilder::close_rank(std::span<const Requirement> requirements) {
  OperationGraph& graph = workload_.graph;
  std::map<OperationId, OperationId> starts;
  for (const Requirement& each : requirements) {
    if (each.at_start && !starts.contains(each.before)) {
      const OperationId start =
          graph.add_host(stream(streams_.starts, "starts"),
                         "start of " + graph.name_of(each.before), StepPart::Host, SimTime());
      graph.add_dependency(start, each.before);
      starts.emplace(each.before, start);
    }
  }
  for (const Requirement& each : requirements) {
    const auto start = starts.find(each.after);
    graph.add_dependency(each.at_start ? starts.at(each.before) : each.before,
                         start != starts.end() ? start->second : each.after);
  }
}

ImportedWorkload GoalBuilder::finish() && {
  if (placed_ > 0) {
    workload_.left_out.push_back(
        fmt::format("cpu or nic of {} messages: the routing of the cluster chooses NICs", placed_));
  }
  return std::move(workload_);
}

}  // namespace trainyard
