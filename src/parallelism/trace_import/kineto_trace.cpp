// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/kineto_trace.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parallelism/trace_import/kineto_events.h"
#include "parallelism/workload/imported_text.h"

namespace trainyard {
namespace {

// Clocks of a GPU are read at both ends of an operation: what overlaps its predecessor by less came
// after it.
constexpr SimTime kClockError = microseconds(1);

// The rank of each trace, by rank.
std::map<int, KinetoTrace> by_rank(const std::vector<ImportedFile>& files) {
  std::map<int, KinetoTrace> traces;
  for (const ImportedFile& file : files) {
    KinetoTrace trace = read_kineto_events(file);
    const int rank = trace.rank.value_or(file.rank.value_or(0));
    const auto [found, is_new] = traces.emplace(rank, std::move(trace));
    if (!is_new) {
      fail_imported(file.name, "",
                    fmt::format("a rank of its own, as {} is rank {}", found->second.name, rank),
                    "the same");
    }
  }
  return traces;
}

class KinetoGraph {
 public:
  KinetoGraph(const std::vector<ImportedFile>& files, int gpus)
      : traces_(by_rank(files)),
        ranks_(count_ranks(gpus)),
        workload_{.format = ImportedFormat::Kineto, .graph = graph_of_traced(ranks_, traces_)} {}

  ImportedWorkload build() {
    SimTime recorded;
    for (const auto& [rank, trace] : traces_) {
      recorded = std::max(recorded, add_rank(rank, trace));
    }
    if (overlaps_ > 0) {
      workload_.notes.push_back(fmt::format(
          "{} operations began before the one before them on their stream ended: they run beside "
          "it",
          overlaps_));
    }
    if (traces_.size() < static_cast<std::size_t>(ranks_)) {
      workload_.notes.push_back(fmt::format(
          "{} of {} ranks have a trace: the others are taken to come to every call in time",
          traces_.size(), ranks_));
    }
    workload_.notes.push_back(
        fmt::format("recorded were {:.3f} us from the first to the last operation of the GPU of a "
                    "rank",
                    recorded.microseconds()));
    add_left_out();
    return std::move(workload_);
  }

 private:
  // Operations one after the other; those of a stream that overlap are on several.
  struct Lane {
    std::int64_t stream = 0;
    StreamId id;
    struct Done {
      OperationId operation;
      SimTime end;  // As recorded.
    };
    std::optional<Done> last = {};
    std::optional<Done> before = {};  // The one before it.
    // Operation that each lane waited for last.
    std::vector<std::optional<OperationId>> known = {};
  };

  int count_ranks(int gpus) {
    int ranks = traces_.rbegin()->first + 1;
    for (const auto& [rank, trace] : traces_) {
      ranks = std::max(ranks, trace.world_size.value_or(0));
      for (const KinetoEvent& event : trace.events) {
        if (event.ranks) {
          ranks = std::max(ranks, *std::max_element(event.ranks->begin(), event.ranks->end()) + 1);
        }
      }
      if (ranks > gpus) {
        fail_imported(trace.name, "",
                      fmt::format("at most {} ranks, the GPUs of the cluster", gpus),
                      std::to_string(ranks));
      }
    }
    return ranks;
  }

  void add_left_out() {
    std::map<std::string, std::size_t> all;
    for (const auto& [rank, trace] : traces_) {
      for (const auto& [category, count] : trace.left_out) {
        all[category] += count;
      }
    }
    std::string text;
    for (const auto& [category, count] : all) {
      text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", count, escaped(category));
    }
    if (!text.empty()) {
      workload_.left_out.push_back("events that are no work of a GPU: " + text);
    }
  }

  // Returns the time from the first start to the last end, as recorded.
  SimTime add_rank(int rank, const KinetoTrace& trace) {
    if (trace.events.empty()) {
      fail_imported(trace.name, "traceEvents", "operations of a GPU", "none");
    }
    lanes_.clear();
    host_.reset();
    const SimTime first = trace.events.front().start;
    SimTime last = first;
    for (const KinetoEvent& event : trace.events) {
      const std::size_t lane = lane_of(rank, event);
      add_event(rank, trace, event, lane, first);
      last = std::max(last, event.start + event.time);
    }
    return last - first;
  }

  std::size_t lane_of(int rank, const KinetoEvent& event) {
    int overlapping = 0;
    for (std::size_t index = 0; index < lanes_.size(); ++index) {
      if (lanes_[index].stream != event.stream) {
        continue;
      }
      if (lanes_[index].last->end <= event.start + kClockError) {
        return index;
      }
      ++overlapping;
    }
    overlaps_ += overlapping > 0 ? 1 : 0;
    const std::string name = overlapping == 0
                                 ? fmt::format("stream {}", event.stream)
                                 : fmt::format("stream {}, beside {}", event.stream, overlapping);
    lanes_.push_back({.stream = event.stream, .id = workload_.graph.add_stream(rank, name)});
    return lanes_.size() - 1;
  }

  void add_event(int rank, const KinetoTrace& trace, const KinetoEvent& event, std::size_t lane,
                 SimTime first) {
    OperationGraph& graph = workload_.graph;
    const OperationId id = add_operation(trace, event, lanes_[lane].id);
    std::optional<Lane::Done> latest;
    for (std::size_t index = 0; index < lanes_.size(); ++index) {
      const Lane& other = lanes_[index];
      // The own lane's order holds without a dependency.
      const bool has_ended = other.last && (index == lane || other.last->end <= event.start);
      const std::optional<Lane::Done>& done = has_ended ? other.last : other.before;
      if (!done) {
        continue;
      }
      if (!latest || done->end > latest->end) {
        latest = done;
      }
      std::vector<std::optional<OperationId>>& known = lanes_[lane].known;
      known.resize(lanes_.size());
      if (index != lane && known[index] != done->operation) {
        known[index] = done->operation;
        graph.add_dependency(done->operation, id);
      }
    }
    const SimTime since = latest ? latest->end : first;
    if (event.start > since) {
      add_gap(rank, latest, event.start - since, id);
    }
    lanes_[lane].before = lanes_[lane].last;
    lanes_[lane].last = Lane::Done{.operation = id, .end = event.start + event.time};
  }

  void add_gap(int rank, const std::optional<Lane::Done>& after, SimTime time, OperationId before) {
    OperationGraph& graph = workload_.graph;
    if (!host_) {
      host_ = graph.add_stream(rank, "host", StreamOrder::Free);
    }
    const OperationId gap = graph.add_host(*host_, "gap", StepPart::Host, time);
    if (after) {
      graph.add_dependency(after->operation, gap);
    }
    graph.add_dependency(gap, before);
  }

  OperationId add_operation(const KinetoTrace& trace, const KinetoEvent& event, StreamId stream) {
    OperationGraph& graph = workload_.graph;
    switch (event.kind) {
      case KinetoKind::Work:
        break;
      case KinetoKind::Call:
        return graph.add_collective(stream, event.name, StepPart::Data,
                                    {.communicator = communicator(trace, event),
                                     .operation = event.operation,
                                     .size = event.size});
      case KinetoKind::Send:
      case KinetoKind::Receive: {
        const GraphMessage message{
            .peer = event.peer, .size = event.size, .handover = Handover::Rendezvous};
        return event.kind == KinetoKind::Send
                   ? graph.add_send(stream, event.name, StepPart::Pipeline, message)
                   : graph.add_receive(stream, event.name, StepPart::Pipeline, message);
      }
    }
    return graph.add_compute(stream, event.name, StepPart::Linear, event.time);
  }

  // Returns the communicator where the list of ranks is cut off or left out: that of
  // distributedInfo, or all ranks.
  CommunicatorId communicator(const KinetoTrace& trace, const KinetoEvent& event) {
    std::vector<int> ranks;
    const auto configured = trace.groups.find(event.group);
    if (event.ranks) {
      ranks = *event.ranks;
    } else if (configured != trace.groups.end() &&
               static_cast<std::int64_t>(configured->second.size()) == event.group_size) {
      ranks = configured->second;
    } else if (event.group_size == ranks_) {
      ranks.resize(static_cast<std::size_t>(ranks_));
      std::iota(ranks.begin(), ranks.end(), 0);
    } else {
      fail_imported(event.place, "Process Group Ranks",
                    fmt::format("{} ranks, here or in distributedInfo", event.group_size),
                    "none, or a list that is cut off");
    }
    const auto [entry, is_new] = communicators_.try_emplace({event.group, ranks});
    if (is_new) {
      entry->second = workload_.graph.add_communicator(
          fmt::format("process group {}", in_quotes(event.group)), std::move(ranks));
    }
    return entry->second;
  }

  std::map<int, KinetoTrace> traces_;
  int ranks_;
  ImportedWorkload workload_;
  std::map<std::pair<std::string, std::vector<int>>, CommunicatorId> communicators_;
  std::vector<Lane> lanes_;       // Lanes of the rank.
  std::optional<StreamId> host_;  // Host stream of the rank.
  std::size_t overlaps_ = 0;
};

}  // namespace

ImportedWorkload read_kineto(const std::vector<ImportedFile>& files, int gpus) {
  return KinetoGraph(files, gpus).build();
}

}  // namespace trainyard
