// SPDX-License-Identifier: Apache-2.0
// One run of an operation graph, as graph_runner.h describes it: events on a simulator that others
// may use as well, so that several graphs can run side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "parallelism/graph/graph_meetings.h"
#include "parallelism/graph/graph_runner.h"
#include "parallelism/graph/graph_traffic.h"
#include "parallelism/graph/operation_graph.h"
#include "parallelism/graph/work_progress.h"
#include "sim/event.h"
#include "sim/simulator.h"

namespace trainyard {

enum class GraphEvent : std::uint64_t {
  Compute,
  Meeting,
  End,  // End of something whose time was known.
};

class GraphRun final : private EventHandler {
 public:
  // The arguments must outlive this, and this the events of the simulator.
  GraphRun(Simulator& simulator, const OperationGraph& graph, GraphTraffic& traffic,
           const GraphRunOptions& options);

  // Starts what has to wait for nothing at once, everything else in events. Once only.
  void start();
  // `done` is woken with `token` at the instant at which the last operation ends.
  void notify(EventHandler& done, std::uint64_t token);
  [[nodiscard]] bool has_ended() const { return ended_ == is_ready_.size(); }
  // Returns the result when nothing happens any more. Once only.
  [[nodiscard]] GraphResult result();

 private:
  // Computation or a call that is under way.
  struct Computing {
    OperationId id;
    WorkProgress progress;
  };
  struct Calling {
    std::optional<SimTime> time;  // When known, without slowdowns.
    WorkProgress progress;
  };
  struct RankState {
    std::vector<Computing> computing;
    std::vector<std::uint32_t> slowing;  // Meetings.
  };

  static constexpr SimTime kUnknown = SimTime::max();

  void on_event(std::uint64_t token) override;
  [[nodiscard]] SimTime now() const { return simulator_.now() - begin_; }
  [[nodiscard]] RankState& rank_of(OperationId id) {
    return ranks_[static_cast<std::size_t>(graph_.rank_of(id))];
  }
  [[nodiscard]] Computing* find_computing(OperationId id);
  void become_ready(OperationId id);
  [[nodiscard]] bool takes_stream(OperationId id);
  void end(OperationId id);
  void run_ready();
  void start_compute(OperationId id);
  void end_compute(OperationId id);
  void start_call(std::uint32_t meeting, OperationId last);
  void end_call(std::uint32_t meeting);
  void ready_for_message(std::uint32_t meeting, OperationId id);
  void send_message(std::uint32_t meeting);
  void message_arrived(std::uint32_t meeting);
  void receive(OperationId id, std::uint32_t meeting);
  void change_speeds(RankState& rank);
  // Starts what its partners may have let wait until `starter` was ready.
  void begin(OperationId id, OperationId starter);
  void schedule(GraphEvent event, std::uint32_t index, WorkProgress& progress);
  [[nodiscard]] std::int64_t slowdown_of(std::uint32_t meeting) const;
  void list_waits();
  [[nodiscard]] std::string wait_of(OperationId id) const;

  Simulator& simulator_;
  const OperationGraph& graph_;
  GraphTraffic& traffic_;
  const GraphRunOptions& options_;
  SimTime begin_;
  GraphMeetings meetings_;
  std::vector<bool> is_ready_;  // Indexed by operation.
  // Indexed by meeting: members that are ready, and times of messages on their way.
  std::vector<std::uint32_t> come_;
  std::vector<bool> has_started_;
  std::vector<SimTime> message_times_;
  std::map<std::uint32_t, Calling> calling_;  // Indexed by meeting.
  std::vector<RankState> ranks_;
  // Queues by stream of StreamOrder::Ready: what runs, then what waits for it.
  std::vector<std::deque<OperationId>> queues_;
  GraphSuccessors successors_;
  std::vector<OperationId> ready_;  // At this instant, still to be started; the last one first.
  GraphResult result_;
  std::size_t ended_ = 0;
  EventHandler* done_ = nullptr;
  std::uint64_t done_token_ = 0;
};

}  // namespace trainyard
