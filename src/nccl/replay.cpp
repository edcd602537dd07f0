// SPDX-License-Identifier: Apache-2.0
#include "nccl/replay.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>

#include "sim/check.h"
#include "sim/event_queue.h"

namespace trainyard::nccl {
namespace {

// A lane goes on; a message comes to the host that posts it, or to the host that it is for.
enum class EventKind : std::uint8_t { Lane, Post, Deliver };

// The last few entries of a sequence, by their place in it.
class Window {
 public:
  explicit Window(std::size_t size) : values_(size) {}
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::int64_t at(std::uint64_t index) const {
    return values_[index % values_.size()];
  }
  void push(std::int64_t value) { values_[count_++ % values_.size()] = value; }

 private:
  std::vector<std::int64_t> values_;
  std::uint64_t count_ = 0;
};

// What a block has filled and a proxy is to post.
struct Message {
  Bytes bytes;
  std::uint32_t units = 0;
};

struct ConnectionState {
  explicit ConnectionState(std::uint32_t slots)
      : arrivals(slots), last_bytes(slots), releases(slots) {}
  std::uint64_t sent = 0;                  // Units that have a slot.
  std::uint64_t received = 0;              // Units that a lane has taken.
  Window arrivals;                         // When the receiver can begin with each unit.
  Window last_bytes;                       // When it has all of it.
  Window releases;                         // When the sender knows that their slot is free.
  std::uint32_t waiting_receiver = kNone;  // A lane that waits for an arrival.
  std::uint32_t waiting_sender = kNone;    // A lane that waits for a free slot.
  Message filling = {};
  std::deque<Message> to_post = {};
  std::deque<Message> under_way = {};
};

class Replay {
 public:
  Replay(const ReplayNetwork& network, std::span<const ReplayLane> lanes, std::uint64_t most_units)
      : network_(network),
        lanes_(lanes),
        most_units_(most_units),
        next_(lanes.size(), 0),
        free_(lanes.size(), 0),
        ports_(network.ports.size(), 0),
        loads_(network.ports.size(), 0),
        hosts_(network.hosts, 0) {
    connections_.reserve(network.connections.size());
    for (const ReplayConnection& connection : network.connections) {
      CHECK(connection.slots > 0, "connection without slots");
      connections_.emplace_back(connection.slots);
      for (const std::uint32_t port : connection.ports) {
        ++loads_[port];
      }
    }
  }

  SimTime run() {
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
      push(0, lane, EventKind::Lane);
    }
    while (const std::optional<Event> event = events_.pop(SimTime::max())) {
      clock_ = event->time.picoseconds();
      const auto subject = static_cast<std::uint32_t>(event->token);
      switch (static_cast<EventKind>(event->token >> 32)) {
        case EventKind::Lane:
          advance(subject, clock_);
          break;
        case EventKind::Post:
          post(subject, clock_);
          break;
        case EventKind::Deliver:
          deliver(subject, clock_);
          break;
      }
    }
    std::int64_t end = 0;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      CHECK(next_[lane] == wanted(lane), "a lane waits for ever");
      end = std::max(end, free_[lane]);
    }
    return SimTime(end);
  }

 private:
  [[nodiscard]] std::uint64_t wanted(std::size_t lane) const {
    return std::min(most_units_, lanes_[lane].program->units());
  }

  void push(std::int64_t time, std::uint32_t subject, EventKind kind) {
    events_.push({.time = SimTime(time),
                  .handler = nullptr,
                  .token = static_cast<std::uint64_t>(kind) << 32 | subject,
                  .sequence = order_++});
  }

  // When the lane can begin the unit; nothing, and the lane waits, where that is not known yet.
  [[nodiscard]] bool ready(std::uint32_t lane, const ReplayUnit& unit, std::int64_t& time) {
    for (const std::uint32_t index : unit.receives) {
      if (index == kNone) {
        continue;
      }
      ConnectionState& state = connections_[index];
      if (state.received >= state.arrivals.count()) {
        state.waiting_receiver = lane;
        return false;
      }
      time = std::max(time, state.arrivals.at(state.received));
    }
    for (const std::uint32_t index : unit.sends) {
      if (index == kNone) {
        continue;
      }
      ConnectionState& state = connections_[index];
      const std::uint32_t slots = network_.connections[index].slots;
      if (state.sent >= slots) {
        const std::uint64_t before = state.sent - slots;
        if (before >= state.releases.count()) {
          state.waiting_sender = lane;
          return false;
        }
        time = std::max(time, state.releases.at(before));
      }
    }
    return true;
  }

  void advance(std::uint32_t lane, std::int64_t now) {
    if (next_[lane] >= wanted(lane)) {
      return;
    }
    const ReplayUnit unit = lanes_[lane].program->unit(next_[lane]);
    std::int64_t start = std::max(now, free_[lane]);
    if (!ready(lane, unit, start)) {
      return;
    }
    if (start > now) {  // Others may want the ports before.
      push(start, lane, EventKind::Lane);
      return;
    }
    const std::int64_t end = carry(lane, unit, now);
    ++next_[lane];
    free_[lane] = end;
    take_from(unit, end);
    // Where the replay is cut off, so is the message.
    hand_on(unit, unit.ends_message || next_[lane] == wanted(lane), end);
    push(end, lane, EventKind::Lane);
  }

  // The unit's bytes through the block and, where it stores at the receiver, over the links.
  // Returns when the block is done.
  [[nodiscard]] std::int64_t carry(std::uint32_t lane, const ReplayUnit& unit, std::int64_t now) {
    const std::int64_t begin = now + unit.cost.picoseconds();
    std::int64_t end = begin + transfer_time(unit.bytes, lanes_[lane].rate).picoseconds();
    for (const std::uint32_t index : unit.receives) {
      if (index != kNone) {
        const ConnectionState& state = connections_[index];
        end = std::max(end, state.last_bytes.at(state.received));
      }
    }
    for (const std::uint32_t index : unit.sends) {
      if (index != kNone && !network_.connections[index].proxied) {
        const bool in_step = next_[lane] < network_.connections[index].units_in_step;
        const Passage passage = pass_ports(network_.connections[index], unit.bytes, begin,
                                           in_step ? unit.cost.picoseconds() : 0);
        entered_ = passage.begin;
        end = std::max(end, passage.end);
      }
    }
    return end;
  }

  // When the first byte enters the last port to take it, and when the last byte has passed all.
  struct Passage {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  // `idle`: of each port, once for all the connections that it has.
  [[nodiscard]] Passage pass_ports(const ReplayConnection& connection, Bytes bytes,
                                   std::int64_t begin, std::int64_t idle = 0) {
    Passage passage{.begin = begin, .end = begin};
    for (const std::uint32_t port : connection.ports) {
      const std::int64_t entry = std::max(ports_[port], begin);
      const std::int64_t end = entry + transfer_time(bytes, network_.ports[port]).picoseconds();
      ports_[port] = end + idle / loads_[port];
      passage.begin = std::max(passage.begin, entry);
      passage.end = std::max(passage.end, end);
    }
    return passage;
  }

  void take_from(const ReplayUnit& unit, std::int64_t end) {
    for (const std::uint32_t index : unit.receives) {
      if (index != kNone) {
        ConnectionState& state = connections_[index];
        ++state.received;
        state.releases.push(end + network_.connections[index].credit_latency.picoseconds());
        wake(state.waiting_sender);
      }
    }
  }

  void hand_on(const ReplayUnit& unit, bool ends_message, std::int64_t end) {
    for (const std::uint32_t index : unit.sends) {
      if (index == kNone) {
        continue;
      }
      const ReplayConnection& connection = network_.connections[index];
      ConnectionState& state = connections_[index];
      ++state.sent;
      if (!connection.proxied) {
        const std::int64_t last = end + connection.latency.picoseconds();
        const std::int64_t first = entered_ + connection.latency.picoseconds();
        arrive(state, connection.flags_in_line ? first : last, last);
        continue;
      }
      state.filling.bytes += unit.bytes;
      ++state.filling.units;
      if (ends_message) {
        state.to_post.push_back(state.filling);
        state.filling = {};
        push(end, index, EventKind::Post);
      }
    }
  }

  void arrive(ConnectionState& state, std::int64_t first, std::int64_t last) {
    // Messages of one connection stay in order.
    if (state.arrivals.count() > 0) {
      first = std::max(first, state.arrivals.at(state.arrivals.count() - 1));
      last = std::max(last, state.last_bytes.at(state.last_bytes.count() - 1));
    }
    state.arrivals.push(first);
    state.last_bytes.push(last);
    wake(state.waiting_receiver);
  }

  void wake(std::uint32_t& waiting) {
    if (waiting != kNone) {
      push(clock_, waiting, EventKind::Lane);
      waiting = kNone;
    }
  }

  // The block has filled the buffer: the hosts, the NICs and the network do the rest.
  void post(std::uint32_t index, std::int64_t now) {
    const ReplayConnection& connection = network_.connections[index];
    ConnectionState& state = connections_[index];
    const Message message = state.to_post.front();
    state.to_post.pop_front();
    state.under_way.push_back(message);
    const std::int64_t posted = serve(connection.sending_host, connection.host_cost, now);
    const Passage passage = pass_ports(connection, message.bytes, posted);
    push(passage.end + connection.latency.picoseconds(), index, EventKind::Deliver);
  }

  void deliver(std::uint32_t index, std::int64_t now) {
    const ReplayConnection& connection = network_.connections[index];
    ConnectionState& state = connections_[index];
    const Message message = state.under_way.front();
    state.under_way.pop_front();
    const std::int64_t seen = serve(connection.receiving_host, connection.host_cost, now);
    for (std::uint32_t unit = 0; unit < message.units; ++unit) {
      arrive(state, seen, seen);
    }
  }

  [[nodiscard]] std::int64_t serve(std::uint32_t host, SimTime cost, std::int64_t now) {
    if (host == kNone) {
      return now;
    }
    hosts_[host] = std::max(hosts_[host], now) + cost.picoseconds();
    return hosts_[host];
  }

  const ReplayNetwork& network_;
  std::span<const ReplayLane> lanes_;
  std::uint64_t most_units_;
  std::vector<std::uint64_t> next_;  // By lane: the unit to run.
  std::vector<std::int64_t> free_;   // By lane: when it ended the last.
  std::vector<std::int64_t> ports_;  // When each has passed on all that came.
  std::vector<std::int64_t> loads_;  // Connections of each port.
  std::vector<std::int64_t> hosts_;  // As ports.
  std::vector<ConnectionState> connections_;
  EventQueue events_;
  std::uint64_t order_ = 0;
  std::int64_t entered_ = 0;  // When the unit that runs entered the links.
  std::int64_t clock_ = 0;    // Of the event that runs.
};

}  // namespace

SimTime replay(const ReplayNetwork& network, std::span<const ReplayLane> lanes,
               std::uint64_t most_units) {
  return Replay(network, lanes, most_units).run();
}

SimTime replay_long(const ReplayNetwork& network, std::span<const ReplayLane> lanes,
                    std::uint64_t exact_units) {
  CHECK(exact_units >= 2, "too few units to see a slope");
  std::uint64_t longest = 0;
  for (const ReplayLane& lane : lanes) {
    longest = std::max(longest, lane.program->units());
  }
  const SimTime exact = replay(network, lanes, exact_units);
  if (longest <= exact_units) {
    return exact;
  }
  const std::uint64_t half = exact_units / 2;
  const SimTime before = replay(network, lanes, half);
  const double slope = (exact - before).microseconds() / static_cast<double>(exact_units - half);
  const double rest = slope * static_cast<double>(longest - exact_units);
  return exact + SimTime(static_cast<std::int64_t>(rest * 1e6));
}

}  // namespace trainyard::nccl
