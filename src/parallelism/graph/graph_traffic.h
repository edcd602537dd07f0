// SPDX-License-Identifier: Apache-2.0
// Computes how long the calls and messages of an operation graph take: either each has a time of
// its own, known before it starts, or they run on a network that all of them share.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "parallelism/graph/operation_graph.h"
#include "parallelism/traffic/group_times.h"
#include "sim/event.h"

namespace trainyard {

class GraphTraffic {
 public:
  GraphTraffic() = default;
  GraphTraffic(const GraphTraffic&) = delete;
  GraphTraffic& operator=(const GraphTraffic&) = delete;
  virtual ~GraphTraffic() = default;

  // Returns the time of all repetitions of a call. Nothing: start_call() says when it is over.
  // `times` of the call are one after the other; it has at least two ranks and is no barrier.
  [[nodiscard]] virtual std::optional<SimTime> call_time(const GraphCommunicator& communicator,
                                                         const GraphCall& call) = 0;
  [[nodiscard]] virtual std::optional<SimTime> message_time(int from, int to, Bytes size) = 0;

  // Starts a call without a time of its own: `done` is woken with `token` at the end.
  virtual void start_call(const GraphCommunicator& communicator, const GraphCall& call,
                          EventHandler& done, std::uint64_t token) = 0;
  virtual void start_message(int from, int to, Bytes size, EventHandler& done,
                             std::uint64_t token) = 0;
};

// Each alone, as GroupTimes says; equal ones are asked for once. For one graph.
class TimedTraffic final : public GraphTraffic {
 public:
  // `times` must outlive this.
  explicit TimedTraffic(GroupTimes& times) : times_(times) {}

  [[nodiscard]] std::optional<SimTime> call_time(const GraphCommunicator& communicator,
                                                 const GraphCall& call) override;
  [[nodiscard]] std::optional<SimTime> message_time(int from, int to, Bytes size) override;
  void start_call(const GraphCommunicator& communicator, const GraphCall& call, EventHandler& done,
                  std::uint64_t token) override;
  void start_message(int from, int to, Bytes size, EventHandler& done,
                     std::uint64_t token) override;

 private:
  GroupTimes& times_;
  // Times by the number of the communicator, in one graph.
  std::map<std::tuple<CommunicatorId, Operation, Bytes>, SimTime> calls_;
  std::map<std::tuple<int, int, Bytes>, SimTime> messages_;
};

}  // namespace trainyard
