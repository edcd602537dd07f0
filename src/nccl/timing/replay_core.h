// SPDX-License-Identifier: Apache-2.0
// The inside of replay.h and network_replay.h: the state of lanes, connections, ports and hosts,
// and what happens to it at each event. Whose queue the events wait in, and what carries the
// messages of proxies between nodes, is the driver's matter.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "nccl/timing/replay.h"
#include "sim/check.h"

namespace trainyard::nccl {

// A lane goes on; a message comes to the host that posts it, enters the network, or comes to the
// host that it is for.
enum class ReplayEvent : std::uint8_t { Lane, Post, Enter, Deliver };

[[nodiscard]] constexpr std::uint64_t replay_token(std::uint32_t subject, ReplayEvent kind) {
  return static_cast<std::uint64_t>(kind) << 32 | subject;
}

// The last few entries of a sequence, by their place in it.
class ReplayWindow {
 public:
  explicit ReplayWindow(std::size_t size) : values_(size) {}
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::int64_t at(std::uint64_t index) const {
    return values_[index % values_.size()];
  }
  void push(std::int64_t value) { values_[count_++ % values_.size()] = value; }

 private:
  std::vector<std::int64_t> values_;
  std::uint64_t count_ = 0;
};

// A message that a block has filled and a proxy is to post.
struct ReplayMessage {
  Bytes bytes;
  Bytes last_unit;
  std::uint32_t units = 0;
  std::int64_t left = 0;  // When the last byte has passed the ports of the sender's node.
};

struct ReplayState {
  explicit ReplayState(std::uint32_t slots) : arrivals(slots), last_bytes(slots), releases(slots) {}
  std::uint64_t sent = 0;                  // Units that have a slot.
  std::uint64_t received = 0;              // Units that a lane has taken.
  ReplayWindow arrivals;                   // When the receiver can begin with each unit.
  ReplayWindow last_bytes;                 // When it has all of it.
  ReplayWindow releases;                   // When the sender knows that their slot is free.
  std::uint32_t waiting_receiver = kNone;  // A lane that waits for an arrival.
  std::uint32_t waiting_sender = kNone;    // A lane that waits for a free slot.
  ReplayMessage filling = {};
  std::deque<ReplayMessage> to_post = {};
  std::deque<ReplayMessage> under_way = {};
  // Counts of the messages under way, where a network carries them: how many it was given, and how
  // many it has brought.
  std::uint32_t entered = 0;
  std::uint32_t arrived = 0;
};

// Driver: `void push(std::int64_t time, std::uint64_t token)` wakes handle() at that time, events
// of equal time in the order of the calls; kHasNetwork says whether it carries messages, by `void
// enter(std::uint32_t connection, Bytes bytes)`, each answered by arrived(), in order.
template <typename Driver>
class ReplayCore {
 public:
  // All must outlive it.
  ReplayCore(Driver& driver, const ReplayNetwork& network, std::span<const ReplayLane> lanes,
             std::uint64_t max_units, const ReplayWatch& watch)
      : driver_(driver),
        network_(network),
        lanes_(lanes),
        max_units_(max_units),
        watch_(watch),
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

  void start() {
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
      push(0, lane, ReplayEvent::Lane);
    }
  }

  void handle(std::uint64_t token, std::int64_t now) {
    clock_ = now;
    const auto subject = static_cast<std::uint32_t>(token);
    switch (static_cast<ReplayEvent>(token >> 32)) {
      case ReplayEvent::Lane:
        advance(subject, now);
        break;
      case ReplayEvent::Post:
        post(subject, now);
        break;
      case ReplayEvent::Enter:
        enter(subject);
        break;
      case ReplayEvent::Deliver:
        deliver(subject, now);
        break;
    }
  }

  // The network has the last byte of the connection's next message at the receiver's NIC. The ports
  // behind it passed the bytes on as they came.
  void arrived(std::uint32_t index, std::int64_t now) {
    const ReplayConnection& connection = network_.connections[index];
    ReplayState& state = connections_[index];
    const ReplayMessage& message = state.under_way[state.arrived++];
    std::int64_t last = std::max(now, message.left + connection.path_latency.picoseconds());
    const std::size_t first = connection.ports.size() - connection.receiving_ports;
    const std::int64_t there = last;
    for (const std::uint32_t port : std::span(connection.ports).subspan(first)) {
      const std::int64_t time = transfer_time(message.bytes, network_.ports[port]).picoseconds();
      ports_[port] = std::max(ports_[port] + time, there);
      last = std::max(last, ports_[port]);
    }
    push(last + connection.latency.picoseconds(), index, ReplayEvent::Deliver);
  }

  // Returns when the last lane had done what it should.
  [[nodiscard]] SimTime end() const {
    std::int64_t end = 0;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      CHECK(next_[lane] == wanted(lane), "a lane waits for ever");
      end = std::max(end, free_[lane]);
    }
    return SimTime(end);
  }

 private:
  [[nodiscard]] std::uint64_t wanted(std::size_t lane) const {
    return std::min(max_units_, lanes_[lane].program->units());
  }

  void push(std::int64_t time, std::uint32_t subject, ReplayEvent kind) {
    driver_.push(time, replay_token(subject, kind));
  }

  // Returns the time at which the lane can begin the unit; nothing, and the lane waits, where that
  // is not known yet.
  [[nodiscard]] bool ready(std::uint32_t lane, const ReplayUnit& unit, std::int64_t& time) {
    for (const std::uint32_t index : unit.receives) {
      if (index == kNone) {
        continue;
      }
      ReplayState& state = connections_[index];
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
      ReplayState& state = connections_[index];
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
      push(start, lane, ReplayEvent::Lane);
      return;
    }
    const std::int64_t end = carry(lane, unit, now);
    if (watch_) {
      watch_(lane, unit, SimTime(now), SimTime(end));
    }
    ++next_[lane];
    free_[lane] = end;
    take_from(unit, end);
    // A replay that is cut off cuts off the message as well.
    hand_on(unit, unit.ends_message || next_[lane] == wanted(lane), end);
    push(end, lane, ReplayEvent::Lane);
  }

  // The unit's bytes through the block and, where it stores at the receiver, over the links.
  // Returns when the block is done.
  [[nodiscard]] std::int64_t carry(std::uint32_t lane, const ReplayUnit& unit, std::int64_t now) {
    const std::int64_t begin = now + unit.cost.picoseconds();
    std::int64_t end =
        begin + transfer_time(unit.bytes, std::min(unit.rate, lanes_[lane].rate)).picoseconds();
    for (const std::uint32_t index : unit.receives) {
      if (index != kNone) {
        const ReplayState& state = connections_[index];
        end = std::max(end, state.last_bytes.at(state.received));
      }
    }
    entered_ = begin;
    for (const std::uint32_t index : unit.sends) {
      // An empty slice moves nothing over links.
      if (index != kNone && !network_.connections[index].proxied && unit.bytes.count() > 0) {
        const bool in_step = next_[lane] < network_.connections[index].units_in_step;
        const Passage passage = pass_ports(network_.connections[index].ports, unit.bytes, begin,
                                           in_step ? unit.cost.picoseconds() : 0);
        entered_ = passage.begin;
        end = std::max(end, passage.end);
      }
    }
    return end;
  }

  // The times when the first byte enters the last port to take it, and when the last byte has
  // passed all.
  struct Passage {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  // `idle`: of each port, once for all the connections that it has.
  [[nodiscard]] Passage pass_ports(std::span<const std::uint32_t> ports, Bytes bytes,
                                   std::int64_t begin, std::int64_t idle = 0) {
    Passage passage{.begin = begin, .end = begin};
    for (const std::uint32_t port : ports) {
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
        ReplayState& state = connections_[index];
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
      ReplayState& state = connections_[index];
      ++state.sent;
      if (!connection.proxied) {
        const std::int64_t last = end + connection.latency.picoseconds();
        const std::int64_t first = entered_ + connection.latency.picoseconds();
        arrive(state, connection.flags_in_line ? first : last, last);
        continue;
      }
      state.filling.bytes += unit.bytes;
      state.filling.last_unit = unit.bytes;
      ++state.filling.units;
      if (ends_message) {
        state.to_post.push_back(state.filling);
        state.filling = {};
        push(end, index, ReplayEvent::Post);
      }
    }
  }

  void arrive(ReplayState& state, std::int64_t first, std::int64_t last) {
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
      push(clock_, waiting, ReplayEvent::Lane);
      waiting = kNone;
    }
  }

  // The block has filled the buffer: the hosts, the NICs and the network do the rest.
  void post(std::uint32_t index, std::int64_t now) {
    const ReplayConnection& connection = network_.connections[index];
    ReplayState& state = connections_[index];
    ReplayMessage message = state.to_post.front();
    state.to_post.pop_front();
    const std::int64_t posted =
        serve(connection.sending_host,
              message_cost(connection, message.bytes) +
                  time_at(connection.host_work.check_rate, message.last_unit),
              now);
    if constexpr (Driver::kHasNetwork) {
      if (!connection.queue_pairs.empty()) {
        const std::size_t own = connection.ports.size() - connection.receiving_ports;
        const Passage passage =
            pass_ports(std::span(connection.ports).first(own), message.bytes, posted);
        message.left = passage.end;
        state.under_way.push_back(message);
        push(passage.begin, index, ReplayEvent::Enter);
        return;
      }
    }
    state.under_way.push_back(message);
    const Passage passage = pass_ports(connection.ports, message.bytes, posted);
    push(passage.end + connection.latency.picoseconds(), index, ReplayEvent::Deliver);
  }

  void enter(std::uint32_t index) {
    if constexpr (Driver::kHasNetwork) {
      ReplayState& state = connections_[index];
      driver_.enter(index, state.under_way[state.entered++].bytes);
    }
  }

  void deliver(std::uint32_t index, std::int64_t now) {
    const ReplayConnection& connection = network_.connections[index];
    ReplayState& state = connections_[index];
    const ReplayMessage message = state.under_way.front();
    state.under_way.pop_front();
    if constexpr (Driver::kHasNetwork) {
      if (!connection.queue_pairs.empty()) {
        --state.entered;
        --state.arrived;
      }
    }
    const std::int64_t seen = serve(connection.receiving_host,
                                    message_cost(connection, message.bytes) +
                                        time_at(connection.host_work.copy_rate, message.bytes),
                                    now);
    for (std::uint32_t unit = 0; unit < message.units; ++unit) {
      arrive(state, seen, seen);
    }
  }

  [[nodiscard]] static SimTime message_cost(const ReplayConnection& connection, Bytes bytes) {
    const HostWork& work = connection.host_work;
    return connection.host_cost + (bytes > work.long_above ? work.long_cost : SimTime(0));
  }
  [[nodiscard]] static SimTime time_at(Bandwidth rate, Bytes bytes) {
    return rate < kMaxBandwidth ? transfer_time(bytes, rate) : SimTime(0);
  }

  [[nodiscard]] std::int64_t serve(std::uint32_t host, SimTime cost, std::int64_t now) {
    if (host == kNone) {
      return now;
    }
    hosts_[host] = std::max(hosts_[host], now) + cost.picoseconds();
    return hosts_[host];
  }

  Driver& driver_;
  const ReplayNetwork& network_;
  std::span<const ReplayLane> lanes_;
  std::uint64_t max_units_;
  const ReplayWatch& watch_;
  std::vector<std::uint64_t> next_;  // Next unit of each lane.
  std::vector<std::int64_t> free_;   // Time when each lane ended its last unit.
  std::vector<std::int64_t> ports_;  // When each has passed on all that came.
  std::vector<std::int64_t> loads_;  // Connections of each port.
  std::vector<std::int64_t> hosts_;  // As ports.
  std::vector<ReplayState> connections_;
  std::int64_t entered_ = 0;  // When the unit that runs entered the links.
  std::int64_t clock_ = 0;    // Time of the event that runs.
};

}  // namespace trainyard::nccl
