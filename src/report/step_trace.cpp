// SPDX-License-Identifier: Apache-2.0
#include "report/step_trace.h"

#include <spdlog/fmt/fmt.h>

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "parallelism/lowered_units.h"

namespace trainyard {
namespace {

std::string rank_name(int rank) {
  return fmt::format("rank {}", rank);
}

// By stream of the graph.
std::vector<TraceTrackId> add_streams(const OperationGraph& graph, TraceRecorder& recorder) {
  std::vector<std::vector<std::size_t>> of_rank(static_cast<std::size_t>(graph.ranks()));
  for (std::size_t index = 0; index < graph.streams().size(); ++index) {
    of_rank[static_cast<std::size_t>(graph.streams()[index].rank)].push_back(index);
  }
  std::vector<TraceTrackId> tracks(graph.streams().size());
  for (const std::vector<std::size_t>& streams : of_rank) {
    for (const std::size_t index : streams) {
      const GraphStream& stream = graph.streams()[index];
      tracks[index] = recorder.add_track(rank_name(stream.rank), stream.name);
    }
  }
  return tracks;
}

// Both passes of a pair are on a track of their chunk, as they run at once.
void add_passes(const StepGraphRun& step, TraceRecorder& recorder) {
  std::map<std::pair<int, int>, TraceTrackId> tracks;  // By rank and chunk.
  for (const LoweredPass& pass : step.lowered.passes) {
    const auto key = std::make_pair(pass.rank, pass.pass.chunk);
    if (!tracks.contains(key)) {
      tracks.emplace(key, recorder.add_track(rank_name(pass.rank),
                                             fmt::format("passes of chunk {}", pass.pass.chunk)));
    }
    recorder.add_span(
        tracks.at(key),
        fmt::format("{} of micro-batch {}", pass_name(pass.pass.kind), pass.pass.micro_batch),
        step.run.timings[pass.first.value()].start, step.run.timings[pass.last.value()].end);
  }
}

}  // namespace

void record_step(const StepGraphRun& step, TraceRecorder& recorder) {
  const OperationGraph& graph = step.lowered.graph;
  add_passes(step, recorder);
  const std::vector<TraceTrackId> tracks = add_streams(graph, recorder);
  const auto track_of = [&](OperationId id) { return tracks[graph.operation(id).stream.value()]; };
  for (std::uint32_t index = 0; index < graph.operations().size(); ++index) {
    const OperationId id(index);
    const GraphTiming& timing = step.run.timings[index];
    recorder.add_span(track_of(id), graph.name_of(id), timing.start, timing.end);
  }
  for (const GraphMeeting& meeting : meetings_of(graph).meetings) {
    for (std::size_t index = 0; index + 1 < meeting.members.size(); ++index) {
      const OperationId from = meeting.members[index];
      const OperationId to = meeting.members[index + 1];
      recorder.add_flow({.from = track_of(from),
                         .to = track_of(to),
                         .name = recorder.intern(graph.name_of(from)),
                         .start = step.run.timings[from.value()].start,
                         .end = step.run.timings[to.value()].start});
    }
  }
}

}  // namespace trainyard
