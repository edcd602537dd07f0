// SPDX-License-Identifier: Apache-2.0
#include "report/steps/step_trace.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parallelism/graph/graph_meetings.h"
#include "parallelism/lowering/lowered_units.h"
#include "sim/check.h"

namespace trainyard {
namespace {

std::string rank_name(int rank) {
  return fmt::format("rank {}", rank);
}

struct Lane {
  TraceTrackId track;
  SimTime end;
};
// The tracks of a stream; more than one where its operations run at once.
using Lanes = std::vector<Lane>;

// Returns the tracks by stream of the graph, with one lane each; those of a rank stand together.
std::vector<Lanes> add_streams(const OperationGraph& graph, TraceRecorder& recorder) {
  std::vector<std::pair<int, std::size_t>> by_rank;
  for (std::size_t index = 0; index < graph.streams().size(); ++index) {
    by_rank.emplace_back(graph.streams()[index].rank, index);
  }
  std::sort(by_rank.begin(), by_rank.end());
  std::vector<Lanes> lanes(by_rank.size());
  for (const auto& [rank, index] : by_rank) {
    lanes[index].push_back(
        {.track = recorder.add_track(rank_name(rank), graph.streams()[index].name), .end = {}});
  }
  return lanes;
}

// Returns, by operation, the first track of its stream on which nothing runs any more when it
// starts.
std::vector<TraceTrackId> choose_tracks(const OperationGraph& graph, const GraphResult& result,
                                        TraceRecorder& recorder) {
  std::vector<Lanes> streams = add_streams(graph, recorder);
  std::vector<OperationId> by_start;
  for (std::uint32_t index = 0; index < graph.operations().size(); ++index) {
    by_start.emplace_back(index);
  }
  const auto timing = [&](OperationId id) { return result.timings[id.value()]; };
  std::stable_sort(by_start.begin(), by_start.end(),
                   [&](OperationId a, OperationId b) { return timing(a).start < timing(b).start; });
  std::vector<TraceTrackId> tracks(by_start.size());
  for (const OperationId id : by_start) {
    const GraphStream& stream = graph.stream_of(id);
    Lanes& lanes = streams[graph.operation(id).stream.value()];
    auto lane = stream.order == StreamOrder::Listed
                    ? lanes.begin()
                    : std::find_if(lanes.begin(), lanes.end(),
                                   [&](const Lane& each) { return each.end <= timing(id).start; });
    if (lane == lanes.end()) {
      const TraceTrackId track = recorder.add_track(
          rank_name(stream.rank), fmt::format("{} {}", stream.name, lanes.size() + 1));
      lane = lanes.insert(lanes.end(), {.track = track, .end = {}});
    }
    lane->end = timing(id).end;
    tracks[id.value()] = lane->track;
  }
  return tracks;
}

// Both passes of a pair are on a track of their chunk, as they run at once.
void add_passes(const StepGraphRun& step, TraceRecorder& recorder) {
  std::map<std::pair<int, int>, TraceTrackId> tracks;  // The key is the rank and the chunk.
  for (const LoweredPass& pass : step.lowered.passes) {
    const auto key = std::make_pair(pass.rank, pass.pass.chunk);
    if (!tracks.contains(key)) {
      tracks.emplace(key, recorder.add_track(rank_name(pass.rank),
                                             fmt::format("passes of chunk {}", pass.pass.chunk)));
    }
    recorder.add_span(
        tracks.at(key),
        fmt::format("{} of micro-batch {}", pass_name(pass.pass.kind), pass.pass.micro_batch),
        step.run.timings[pass.first.value()].start, step.run.timings[pass.last.value()].end,
        {.category = "pass"});
  }
}

void add_memory(const StepGraphRun& step, const StepMemory& memory, TraceRecorder& recorder) {
  struct Reader {
    TraceCounterId counter;
    std::size_t position = 0;
  };
  std::map<int, Reader> readers;  // The keys are ranks of the graph.
  for (const LoweredPass& pass : step.lowered.passes) {
    const RankMemory& of = memory.ranks.at(static_cast<std::size_t>(pass.place));
    if (!readers.contains(pass.rank)) {
      readers[pass.rank].counter = recorder.add_counter(rank_name(pass.rank), "memory (GiB)");
    }
    std::size_t& position = readers[pass.rank].position;
    while (position < of.passes.size() && of.passes[position] != pass.pass) {
      ++position;  // A pass without computation.
    }
    CHECK(position < of.passes.size(), "a pass of which no memory is known");
    recorder.add_sample({.counter = readers[pass.rank].counter,
                         .time = step.run.timings[pass.first.value()].start,
                         .value = gibibytes(of.moment(position++).use.device())});
  }
}

// Returns the kind of the operation, and the bytes that it sends. Receives are of the same bytes as
// their sends, which alone count.
TraceDetail detail_of(const OperationGraph& graph, const GraphOperation& operation) {
  switch (operation.kind) {
    case GraphOperationKind::Compute:
      return {.category = "compute"};
    case GraphOperationKind::Host:
      return {.category = "host"};
    case GraphOperationKind::Collective: {
      const GraphCommunicator& group = graph.communicators()[operation.call.communicator.value()];
      return {.category = "collective",
              .bytes = operation.call.size,
              .texts = {{"operation", std::string(to_string(operation.call.operation))},
                        {"ranks", std::to_string(group.ranks.size())},
                        {"group", group.name}}};
    }
    case GraphOperationKind::Send:
      return {.category = "message", .bytes = operation.message.size};
    case GraphOperationKind::Receive:
      return {.category = "receive"};
  }
  CHECK(false, "unknown kind of operation");
}

}  // namespace

void record_graph(const OperationGraph& graph, const GraphResult& result, TraceRecorder& recorder) {
  const std::vector<TraceTrackId> tracks = choose_tracks(graph, result, recorder);
  const auto track_of = [&](OperationId id) { return tracks[id.value()]; };
  for (std::uint32_t index = 0; index < graph.operations().size(); ++index) {
    const OperationId id(index);
    const GraphTiming timing = result.timings[index];
    recorder.add_span(track_of(id), graph.name_of(id), timing.start, timing.end,
                      detail_of(graph, graph.operation(id)));
  }
  const GraphMeetings meetings(graph);
  for (std::uint32_t meeting = 0; meeting < meetings.size(); ++meeting) {
    const std::span<const OperationId> members = meetings.members(meeting);
    for (std::size_t index = 0; index + 1 < members.size(); ++index) {
      const OperationId from = members[index];
      const OperationId to = members[index + 1];
      recorder.add_flow({.from = track_of(from),
                         .to = track_of(to),
                         .name = recorder.intern(graph.name_of(from)),
                         .start = result.timings[from.value()].start,
                         .end = result.timings[to.value()].start});
    }
  }
}

void record_step(const StepGraphRun& step, TraceRecorder& recorder, const StepMemory* memory) {
  add_passes(step, recorder);
  if (memory != nullptr) {
    add_memory(step, *memory, recorder);
  }
  record_graph(step.lowered.graph, step.run, recorder);
}

}  // namespace trainyard
