// SPDX-License-Identifier: Apache-2.0
// The flow engine: messages as fluids that share links max-min fairly.
//
// Every connection with a message under way is a flow. At any instant all flows have the rates of
// max_min.h; they change only when a flow begins or ends. All that happens at one instant is solved
// once: the network marks itself stale and wakes itself with no delay, behind everything that is
// already due at that instant.
//
// Connections of the same path form a class and have the same rate at every moment. A class keeps
// the service S that each of its flows has received since the class last became busy, in rate units
// times picoseconds, exact in 128 bits. A message of w units of work that begins at service S0 ends
// when S = S0 + w, whatever the rates were in between: a change of rate touches the class, not its
// flows, and rounding happens once for each message, up, when the end becomes an integer
// picosecond:
//     end = t + ceil((S0 + w - S(t)) / rate).
// On an idle path this is transfer_time(size, bandwidth). The messages under way of a class are a
// leftist heap by S0 + w, linked through the connections.
//
// A path that is staged in host memory has one more link in the solver, its bounce buffers, with
// the rate of staging_bandwidth() and shared by the connections of this path alone.
//
// Guests are loads of another engine on the same links: each takes part in the sharing as a flow,
// up to a limit of its own, and sends nothing. A watcher is told what flows take of each link, so
// that the other engine can keep to the rest.
//
// The latency of the path is added when the last byte leaves the source (cut-through: serialisation
// is charged once, at the bottleneck). Nothing is kept of a message that has left.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "network/contract/network.h"
#include "network/flow/earliest.h"
#include "network/flow/max_min.h"

namespace trainyard {

// Is told, after each solve, of the links of which flows, without guests, take another rate.
class FlowWatcher {
 public:
  FlowWatcher(const FlowWatcher&) = delete;
  FlowWatcher& operator=(const FlowWatcher&) = delete;
  virtual void on_taken(LinkId link, FlowRate rate) = 0;

 protected:
  FlowWatcher() = default;
  ~FlowWatcher() = default;
};

class FlowNetwork final : public Network, private EventHandler {
 public:
  FlowNetwork(Simulator& simulator, Routing& routing);

  ConnectionId connect(const ConnectionSpec& spec) override;
  void send(ConnectionId connection, Bytes size, EventHandler& done, std::uint64_t token) override;
  [[nodiscard]] SimTime quiet_time() const override { return simulator_.now(); }
  void reserve(std::size_t connections) override;
  [[nodiscard]] NetworkStats stats() const override;
  [[nodiscard]] std::vector<LinkUse> link_use() const override;

  // To be said before the first message.
  void watch(FlowWatcher& watcher);
  // Returns the rate of all flows on a link since the last solve; only with a watcher.
  [[nodiscard]] FlowRate taken(LinkId link) const { return taken_[link.value()]; }
  // Returns the flows and guests on a link since then.
  [[nodiscard]] std::uint32_t flows_on(LinkId link) const { return solver_.flows(link.value()); }
  // A guest over these links, at least one; numbered from 0. It has no share until it is present.
  [[nodiscard]] std::uint32_t add_guest(std::span<const LinkId> path);
  void set_present(std::uint32_t guest, bool is_present);
  // The most that it may get, above zero; without a limit, or above the capacity, there is none.
  void limit_guest(std::uint32_t guest, FlowRate max);
  // Returns its share since the last solve; zero while it is absent.
  [[nodiscard]] FlowRate share_of_guest(std::uint32_t guest) const {
    return solver_.rate(guests_[guest].path_class - 1);
  }

 private:
  using Work = unsigned __int128;  // Rate units times picoseconds.
  static constexpr std::uint32_t kNone = 0xffff'ffff;

  struct Message {
    Bytes size;
    EventHandler* done;
    std::uint64_t token;
    std::uint32_t next;  // Behind it on the connection, or in the list of free slots.
  };
  struct Connection {
    Work end;                // Service at which the message under way ends.
    std::uint64_t sequence;  // Order of the send() of the message under way.
    std::uint32_t path_class;
    std::uint32_t first = kNone;  // The message under way, then those that wait.
    std::uint32_t last = kNone;
    std::uint32_t left = kNone;  // Heap of the class.
    std::uint32_t right = kNone;
    std::uint32_t rank = 0;  // Links to the nearest missing child on the right.
  };
  struct PathClass {
    Work service = 0;  // As of `updated`.
    SimTime updated;
    FlowRate rate = 0;  // Since `updated`.
    SimTime latency;
    Bytes bytes;  // Bytes of all messages that have left.
    std::uint32_t heap = kNone;
    std::uint32_t flows = 0;
    bool pending = false;  // In pending_.
    bool is_guest = false;
    FlowRate taken = 0;  // Rate of all its flows as of the last solve, with a watcher.
  };
  struct Guest {
    std::uint32_t path_class;
    MaxMinSolver::LinkIndex limit;  // A link of its own.
    FlowRate max;                   // Capacity of the slowest link of its path.
  };

  struct TableSlot {
    std::uint32_t hash = 0;  // The upper half.
    std::uint32_t path_class = kNone;
  };
  // Open addressing, from the hash of a path to its class. One for each first link: whoever
  // connects one node after the other stays in one small table.
  struct PathTable {
    std::vector<TableSlot> slots;
    std::size_t used = 0;
  };
  struct Ended {
    std::uint64_t sequence;
    std::uint32_t connection;
  };

  void on_event(std::uint64_t token) override;
  [[nodiscard]] std::uint32_t class_of(const std::vector<LinkId>& path);
  // Returns the links of the topology, so without bounce buffers.
  [[nodiscard]] std::span<const MaxMinSolver::LinkIndex> links_of(std::uint32_t path_class) const;
  static void make_room(PathTable& table);
  void begin_next(std::uint32_t index);
  void finish_due();
  void sort_by_send();
  void finish(std::uint32_t index);
  void resolve();
  void wake_at_least();
  void advance(std::uint32_t path_class);
  [[nodiscard]] SimTime time_for(Work work, FlowRate rate);
  void update_end(std::uint32_t path_class);
  [[nodiscard]] bool before(std::uint32_t a, std::uint32_t b) const;
  [[nodiscard]] std::uint32_t merge(std::uint32_t a, std::uint32_t b);
  [[nodiscard]] std::uint32_t take_slot(const Message& message);
  void mark_stale(std::uint32_t path_class);
  void note_taken(std::uint32_t path_class);
  void tell_watcher();

  Simulator& simulator_;
  Routing& routing_;
  MaxMinSolver solver_;
  std::vector<Connection> connections_;
  std::vector<PathClass>
      classes_;  // One more than the solver's: class 0 is the path without links.
  std::vector<Message> messages_;
  std::uint32_t free_message_ = kNone;
  EarliestTimes ends_;                  // Ends by class.
  std::vector<PathTable> tables_;       // Tables by the first link of the path.
  std::vector<LinkId> route_;           // Scratch.
  std::vector<std::uint32_t> pending_;  // Classes whose flows changed since the last solve.
  std::vector<std::uint32_t> due_;      // Scratch: classes.
  std::vector<Ended> ended_;            // Scratch.
  std::vector<MaxMinSolver::LinkIndex> link_indices_;
  std::vector<Guest> guests_;
  FlowWatcher* watcher_ = nullptr;
  // Rates of flows on each link, with a watcher, and those that it knows.
  std::vector<FlowRate> taken_;
  std::vector<FlowRate> told_;
  std::vector<std::uint32_t> moved_;  // Scratch: links of which flows may take another rate.
  // The last division of time_for: messages of one size at one rate are the rule.
  Work known_work_ = 0;
  FlowRate known_rate_ = 0;
  SimTime known_time_;
  std::uint64_t sends_ = 0;
  std::uint64_t wake_generation_ = 0;
  SimTime wake_time_ = SimTime::max();
  bool solve_scheduled_ = false;
  NetworkStats stats_;
};

}  // namespace trainyard
