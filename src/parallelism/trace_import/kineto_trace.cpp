// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/kineto_trace.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parallelism/trace_import/execution_trace.h"
#include "parallelism/trace_import/kineto_events.h"
#include "parallelism/trace_import/nsys_events.h"
#include "parallelism/workload/imported_text.h"

namespace trainyard {
namespace {

// An operation that begins earlier than its predecessor on the stream ends, by at most this, still
// comes after it: clocks are read at both ends, and newer GPUs launch an operation while the one
// before it drains. The time of the predecessor is then taken until that beginning.
constexpr SimTime kLongestDrain = microseconds(1);

constexpr std::string_view kGroupNowhere = "of groups whose ranks are nowhere in the file";

// Cuts operations where the next one of their stream begins, so that all together take what was
// recorded.
void cut_draining(std::vector<KinetoEvent>& events) {
  std::map<std::int64_t, KinetoEvent*> last;  // The last one of each stream.
  for (KinetoEvent& event : events) {
    KinetoEvent*& before = last[event.stream];
    if (before != nullptr) {
      const SimTime end = before->start + before->time;
      const bool drains = end > event.start && end <= event.start + kLongestDrain;
      if (drains && event.start + event.time >= end) {
        before->time = event.start - before->start;
      }
    }
    before = &event;
  }
}

// The trace of each rank: that which the file states, or the pattern of names has; of a file alone
// without both, 0. GPUs of one export of Nsight Systems count on from there.
std::map<int, KinetoTrace> by_rank(const std::vector<ImportedFile>& files) {
  std::map<int, KinetoTrace> traces;
  for (const ImportedFile& listed : files) {
    const ImportedFile file = with_text(listed);
    std::vector<KinetoTrace> read;
    if (is_sqlite(file.text) || is_lines_of_json(file.text)) {
      read = read_nsys_events(file);
    } else if (is_execution_trace(file.text)) {
      read.push_back(as_profile(read_execution_trace(file)));
    } else {
      read.push_back(read_kineto_events(file));
    }
    if (read.empty()) {
      fail_imported(file.name, "", "operations of a GPU", "none");
    }
    if (!read.front().rank && !file.rank && files.size() > 1) {
      fail_imported(
          file.name, "distributedInfo",
          "the rank, as there are several files (or their names as a pattern with {rank})", "none");
    }
    int rank = read.front().rank.value_or(file.rank.value_or(0));
    for (KinetoTrace& trace : read) {
      cut_draining(trace.events);
      if (!traces.empty() && trace.has_times != traces.begin()->second.has_times) {
        fail_imported(file.name, "",
                      "profiles or execution traces alone (beside profiles they are "
                      "--execution-traces)",
                      "both");
      }
      const auto [found, is_new] = traces.emplace(rank, std::move(trace));
      if (!is_new) {
        fail_imported(file.name, "",
                      fmt::format("a rank of its own, as {} is rank {}", found->second.name, rank),
                      "the same");
      }
      ++rank;
    }
  }
  return traces;
}

// The profiles, with what each rank called where there is an execution trace of it.
std::map<int, KinetoTrace> joined(std::map<int, KinetoTrace> traces,
                                  const std::vector<ImportedFile>& files) {
  for (const ImportedFile& file : files) {
    const ExecutionTrace calls = read_execution_trace(with_text(file));
    const int rank = calls.rank.value_or(0);
    const auto found = traces.find(rank);
    if (found == traces.end()) {
      fail_imported(file.name, "", "a rank that has a profile", std::to_string(rank));
    }
    join(found->second, calls);
  }
  return traces;
}

// Whether kernels that only their launches name are calls of all ranks: nothing in the files tells
// of another group.
bool are_of_all(const std::map<int, KinetoTrace>& traces) {
  return std::all_of(traces.begin(), traces.end(), [](const auto& entry) {
    const KinetoTrace& trace = entry.second;
    return trace.world_size && trace.groups.size() <= 1 &&
           std::all_of(trace.launched.begin(), trace.launched.end(),
                       [&](const KinetoLaunched& each) {
                         return each.group_size == 0 || each.group_size == *trace.world_size;
                       });
  });
}

// Operation and bytes of the calls that would come of them.
std::vector<std::pair<Operation, Bytes>> launched_calls(const KinetoTrace& trace) {
  std::vector<std::pair<Operation, Bytes>> calls;
  for (const KinetoLaunched& each : trace.launched) {
    if (each.unknown.empty()) {
      calls.emplace_back(each.operation, each.put_in);
    }
  }
  return calls;
}

// The kernels without a name become the calls around their launches, where all ranks that have a
// profile made the same ones. Returns how many.
std::size_t name_by_launches(std::map<int, KinetoTrace>& traces) {
  const bool are_same = std::all_of(traces.begin(), traces.end(), [&](const auto& entry) {
    return launched_calls(entry.second) == launched_calls(traces.begin()->second);
  });
  if (!are_same) {
    return 0;
  }
  const bool is_of_all = are_of_all(traces);
  std::size_t named = 0;
  for (auto& [rank, trace] : traces) {
    const std::int64_t ranks = trace.world_size.value_or(0);
    for (const KinetoLaunched& each : trace.launched) {
      KinetoEvent& event = trace.events[each.event];
      const Bytes size = each.operation == Operation::AllGather ? each.put_in * ranks : each.put_in;
      if (!each.unknown.empty()) {
        event.unknown = each.unknown;
      } else if (!is_of_all || size > Bytes(kMaxImportedBytes)) {
        event.unknown = kGroupNowhere;
      } else {
        event.kind = KinetoKind::Call;
        event.operation = each.operation;
        event.size = size;
        event.group_size = ranks;
        ++named;
      }
    }
  }
  return named;
}

class KinetoGraph {
 public:
  KinetoGraph(const std::vector<ImportedFile>& files, const ImportedTarget& target)
      : traces_(joined(by_rank(files), target.execution_traces)),
        launched_(target.execution_traces.empty() ? name_by_launches(traces_) : 0),
        ranks_(count_ranks(target.gpus())),
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
    if (launched_ > 0) {
      workload_.notes.push_back(fmt::format(
          "{} kernels of collectives without a name are taken as the calls around their "
          "launches, of all {} ranks",
          launched_, ranks_));
    }
    for (const auto& [unknown, recorded_only] : recorded_only_) {
      workload_.notes.push_back(
          has_times()
              ? fmt::format("{} kernels of collectives {} take their recorded time, {:.3f} us in "
                            "all",
                            recorded_only.count, unknown, recorded_only.time.microseconds())
              : fmt::format("{} calls of collectives {} take no time", recorded_only.count,
                            unknown));
    }
    if (traces_.size() < static_cast<std::size_t>(ranks_)) {
      workload_.notes.push_back(fmt::format(
          "{} of {} ranks have a trace: the others are taken to come to every call in time",
          traces_.size(), ranks_));
    }
    workload_.notes.push_back(
        has_times()
            ? fmt::format("recorded were {:.3f} us from the first to the last operation of the GPU "
                          "of a rank",
                          recorded.microseconds())
            : "an execution trace alone has no times: its calls run one after the other, without "
              "computation");
    add_left_out();
    return std::move(workload_);
  }

 private:
  [[nodiscard]] bool has_times() const { return traces_.begin()->second.has_times; }

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
      if (lanes_[index].last->end <= event.start) {
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
    if (graph.operation(id).kind == GraphOperationKind::Collective && trace.has_times) {
      workload_.recorded_calls.push_back({id, event.time});
    }
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
      case KinetoKind::Recorded:
        return add_recorded(event, stream, event.unknown);
      case KinetoKind::Call: {
        const std::optional<CommunicatorId> group = communicator(trace, event);
        if (!group) {
          return add_recorded(event, stream, kGroupNowhere);
        }
        return graph.add_collective(
            stream, event.name, StepPart::Data,
            {.communicator = *group, .operation = event.operation, .size = event.size});
      }
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

  // The time is that of no computation: --compute-scale does not change it.
  OperationId add_recorded(const KinetoEvent& event, StreamId stream, std::string_view unknown) {
    RecordedOnly& recorded_only = recorded_only_[unknown];
    ++recorded_only.count;
    recorded_only.time += event.time;
    return workload_.graph.add_host(stream, event.name, StepPart::Data, event.time);
  }

  // Returns, where the list of ranks is cut off or left out, that of distributedInfo, or all ranks;
  // nothing if neither has as many.
  std::optional<CommunicatorId> communicator(const KinetoTrace& trace, const KinetoEvent& event) {
    std::vector<int> ranks;
    const auto configured = trace.groups.find(event.group);
    if (event.ranks) {
      ranks = *event.ranks;
    } else if (configured != trace.groups.end() &&
               static_cast<std::int64_t>(configured->second.size()) == event.group_size) {
      ranks = configured->second;
    } else if (event.group_size == ranks_ || event.group_size == kAllRanks) {
      ranks.resize(static_cast<std::size_t>(ranks_));
      std::iota(ranks.begin(), ranks.end(), 0);
    } else {
      return std::nullopt;
    }
    const auto [entry, is_new] = communicators_.try_emplace({event.group, ranks});
    if (is_new) {
      entry->second = workload_.graph.add_communicator(
          fmt::format("process group {}", in_quotes(event.group)), std::move(ranks));
    }
    return entry->second;
  }

  struct RecordedOnly {
    std::size_t count = 0;
    SimTime time;
  };

  std::map<int, KinetoTrace> traces_;
  std::size_t launched_;  // Calls that only launches name.
  int ranks_;
  ImportedWorkload workload_;
  std::map<std::pair<std::string, std::vector<int>>, CommunicatorId> communicators_;
  std::vector<Lane> lanes_;       // Lanes of the rank.
  std::optional<StreamId> host_;  // Host stream of the rank.
  std::size_t overlaps_ = 0;
  std::map<std::string_view, RecordedOnly> recorded_only_;  // Calls by why they are not predicted.
};

}  // namespace

ImportedWorkload read_kineto(const std::vector<ImportedFile>& files, const ImportedTarget& target) {
  return KinetoGraph(files, target).build();
}

}  // namespace trainyard
