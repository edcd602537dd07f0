// SPDX-License-Identifier: Apache-2.0
// Runs a schedule over a network: the plain runtime, with nothing but links and latencies.
//
// A lane goes through its steps: Send hands the bytes to the connection and goes on (with
// rendezvous, when the lane's last message has arrived), Receive and Reduce wait for the next
// message, Wait for another lane. Reducing and copying take no time. The state is a step number a
// lane and a count of arrived messages a connection; nothing is kept of a message that was
// received.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/schedule/schedule.h"
#include "network/contract/network.h"
#include "sim/simulator.h"
#include "sim/trace.h"

namespace trainyard {

// The connections of a schedule, in its order, as the executor opens them. The arguments must
// outlive this.
class ScheduleConnections {
 public:
  // A node for each rank, then for each relay.
  ScheduleConnections(const Schedule& schedule, std::span<const NodeId> rank_nodes);
  [[nodiscard]] ConnectionSpec next();

 private:
  const Schedule& schedule_;
  std::span<const NodeId> rank_nodes_;
  std::vector<NicTurns> turns_;
  std::uint32_t next_ = 0;
};

class Executor final : private EventHandler {
 public:
  // Connects the ranks and relays, rank r on node rank_nodes[r], relay i on rank_nodes[ranks + i].
  // The arguments must outlive the executor. With a trace, every wait for a message is recorded as
  // a span on the track of its rank or relay.
  Executor(Simulator& simulator, Network& network, const Schedule& schedule,
           std::span<const NodeId> rank_nodes, Bytes size, TraceRecorder* trace = nullptr);

  // Starts all lanes at the present time; again, if finished. The simulator is to be run after.
  void start();
  // Wakes `done` with `token`, as an event at that time, whenever the last lane has ended.
  void notify(EventHandler& done, std::uint64_t token) {
    done_ = &done;
    done_token_ = token;
  }

  [[nodiscard]] bool finished() const { return lanes_left_ == 0; }
  // When the last lane ended, or later where the network says that its links were not done
  // (Network::quiet_time). Only when finished.
  [[nodiscard]] SimTime finish_time() const;
  // When the last lane ended. Only when finished.
  [[nodiscard]] SimTime end() const;

  // The end-of-run contract: every lane at its end, and bytes sent = bytes received = what the
  // schedule says. Nothing, or what is wrong: who waits for whom.
  [[nodiscard]] std::optional<std::string> contract_violation() const;
  [[nodiscard]] std::uint64_t messages_received() const { return messages_received_; }

 private:
  void on_event(std::uint64_t token) override;
  // Runs a lane, and those that wait for it, as far as they go.
  void advance(std::uint32_t lane);
  void run_lane(std::uint32_t lane);
  void wake_waiters(std::uint32_t lane);
  void record(std::uint32_t lane, const Step& step);

  static constexpr std::uint32_t kNoLane = 0xffff'ffff;

  struct Link {
    ConnectionId connection;
    std::uint32_t arrived = 0;  // Messages that no step has taken.
    std::uint32_t waiting = kNoLane;
    // With rendezvous:
    bool under_way = false;
    bool held = false;               // A message waits for its receiver.
    std::uint32_t sender = kNoLane;  // The lane of the last message.
    Bytes held_size{};
  };

  // The last message of a lane, with rendezvous.
  struct LastSend {
    bool has_arrived = true;
    bool is_awaited = false;  // The lane waits for that.
  };

  // Returns whether the lane may send its next message. Otherwise it waits.
  [[nodiscard]] bool can_send(std::uint32_t lane, std::uint32_t index);
  void end_send(std::uint32_t lane);
  void send(std::uint32_t index, Bytes size);
  void start_message(std::uint32_t index, Bytes size);

  Simulator& simulator_;
  Network& network_;
  const Schedule& schedule_;
  Chunking chunking_;
  TraceRecorder* trace_;
  std::vector<Link> links_;                // One per connection of the schedule.
  std::vector<std::uint64_t> next_;        // The step that each lane runs next.
  std::vector<LastSend> last_sends_;       // One per lane, with rendezvous only.
  std::vector<SimTime> waiting_since_;     // One per lane, with a trace only.
  std::vector<TraceTrackId> lane_tracks_;  // The same.
  // For each lane, if the schedule has Wait steps: the lanes that wait for it, in the order in
  // which they began to.
  std::vector<std::vector<std::uint32_t>> waiters_;
  std::vector<std::uint32_t> ready_;  // Lanes to run at this instant.
  std::uint32_t lanes_left_ = 0;
  SimTime last_end_;
  Bytes bytes_sent_;
  Bytes bytes_received_;
  std::uint64_t messages_sent_ = 0;
  std::uint64_t messages_received_ = 0;
  EventHandler* done_ = nullptr;
  std::uint64_t done_token_ = 0;
};

}  // namespace trainyard
