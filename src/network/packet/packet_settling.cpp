// SPDX-License-Identifier: Apache-2.0
// Bounded fast-forward: phases whose rates have settled stand still without being what they were.
//
// The state of a phase is looked at three times, at equal distances. If no message began or was
// complete meanwhile and all rates of the second interval are those of the first, up to the bound
// (packet_settled.h), the phase stands still. When it goes on, after whole periods, each connection
// has sent so many packets more, and queues are as much longer or shorter as they grew or drained;
// what ports have passed on follows from both, so that no packet is lost or counted twice. It stops
// before a message ends, a queue is empty or at a threshold of marking, or a switch would count its
// buffer. Then packets run again, and rates that they have are compared with those from before.
#include <algorithm>
#include <limits>
#include <utility>

#include "network/packet/packet_phases.h"
#include "sim/check.h"

namespace trainyard {
namespace {

// Estimates, which decide about speed, and about how often rates are compared. The first interval:
// about 200 full packets at 400 Gb/s.
constexpr Picoseconds kFirstInterval = 20'000'000;
constexpr Picoseconds kLongestInterval = 64 * kFirstInterval;
// Periods for which rates are trusted, and a phase for which it is worth while to stand still.
constexpr std::int64_t kMostSettled = 32;
constexpr std::int64_t kLeastSettled = 2;
// So many times in a row that messages began before they are looked at for a period.
constexpr int kChanges = 2;

}  // namespace

std::map<std::uint32_t, std::int64_t> PacketPhases::waiting_in(const Ring<Packet>& queue) {
  waiting_.resize(lines_.size());
  std::vector<std::uint32_t> seen;
  for (std::uint32_t i = 0; i < queue.size(); ++i) {
    const std::uint32_t id = queue.at(i).connection;
    if (waiting_[id]++ == 0) {
      seen.push_back(id);
    }
  }
  std::map<std::uint32_t, std::int64_t> waiting;
  for (const std::uint32_t id : seen) {
    waiting.emplace(id, std::exchange(waiting_[id], 0));
  }
  return waiting;
}

RateState PacketPhases::rate_state(std::uint32_t number, Picoseconds time, Queues queues) {
  const Phase& phase = phases_[number];
  RateState state{.time = time};
  const auto sent = std::ranges::lower_bound(phase.entries, time, {},
                                             [](const Entry& entry) { return entry.message.time; });
  state.sends = static_cast<std::uint64_t>(sent - phase.entries.begin());
  for (const std::size_t i : left_of(phase)) {
    state.pending.push_back(i);
  }
  for (const std::uint32_t id : phase.connections) {
    const PacketSenders::SendingEnd& end = senders_.end(id);
    state.lines.push_back(
        {.order = end.sending == kNoIndex ? kNeverWindow : messages_[end.sending].order,
         .sequence = end.sequence});
  }
  for (const std::uint32_t index : phase.ports) {
    const Port& port = fabric_.ports()[index];
    state.places.push_back({.packets = port.counters.packets, .waiting = port.queue.size()});
    if (queues == Queues::Counted) {
      state.places.back().deep = waiting_in(port.queue);
    }
  }
  return state;
}

// The ports that connections take, by their place in the phase.
std::vector<RatePath> PacketPhases::rate_paths(const Phase& phase) const {
  std::vector<std::size_t> places(fabric_.ports().size());
  for (std::size_t place = 0; place < phase.ports.size(); ++place) {
    places[phase.ports[place]] = place;
  }
  std::vector<RatePath> paths;
  for (const std::uint32_t id : phase.connections) {
    paths.push_back({.connection = id, .places = {}});
    for (std::size_t hop = 0; hop < senders_.end(id).hops; ++hop) {
      paths.back().places.push_back(places[lines_[id].path[hop]]);
    }
  }
  return paths;
}

// Begins to find out whether rates have settled. False if that is not worth while.
bool PacketPhases::measure(std::uint32_t number, Picoseconds until) {
  Phase& phase = phases_[number];
  if (fabric_.options().fast_forward != FastForward::Bounded ||
      phase.settling.changes >= kChanges) {
    phase.settling.changes = 0;
    return false;
  }
  phase.settling.interval = std::max(phase.settling.interval, kFirstInterval);
  phase.repeat->stage = Repeat::Stage::Measured;
  phase.repeat->states = {rate_state(number, until, Queues::Counted)};
  cuts_.push({.time = until + phase.settling.interval, .serial = phase.serial, .phase = number});
  return true;
}

// A third of the measurement is done.
void PacketPhases::go_on_measuring(std::uint32_t number, Picoseconds time) {
  Phase& phase = phases_[number];
  Repeat& repeat = *phase.repeat;
  // Queues by connection are compared between the first state and the third.
  repeat.states.push_back(
      rate_state(number, time, repeat.states.size() == 1 ? Queues::NotCounted : Queues::Counted));
  if (has_changed(repeat.states.front(), repeat.states.back())) {
    ++phase.settling.changes;
    measure_later(number, time);
    return;
  }
  if (repeat.states.size() == 2) {
    cuts_.push({.time = time + phase.settling.interval, .serial = phase.serial, .phase = number});
    return;
  }
  phase.settling.changes = 0;
  repeat.settled = settled_rates(repeat.states[0], repeat.states[1], repeat.states[2],
                                 rate_paths(phase), kFastForwardBound);
  if (!repeat.settled) {
    phase.settling.interval = std::min(2 * phase.settling.interval, kLongestInterval);
    measure_later(number, time);
    return;
  }
  // If nothing has changed since it stood still, the rates ought to be those of before.
  if (phase.settling.rates && !has_changed(phase.settling.before, repeat.states.front())) {
    const double off = drift(*phase.settling.rates, *repeat.settled);
    counts_.skip_error = std::max(counts_.skip_error, off);
  }
  repeat.stage = Repeat::Stage::Proved;
  repeat.period = repeat.settled->period;
  repeat.matched = repeat.states.back().sends;
  proved_.push_back(number);
}

void PacketPhases::measure_later(std::uint32_t number, Picoseconds now) {
  Phase& phase = phases_[number];
  phase.repeat.reset();
  phase.patience = kFirstInterval;
  try_later(number, now);
}

// The number of periods for which it can go on like that.
std::int64_t PacketPhases::most_settled(std::uint32_t number) const {
  const Phase& phase = phases_[number];
  const SettledRates& rates = *phase.repeat->settled;
  std::int64_t most = kMostSettled;
  bool is_moving = !rates.queues.empty();
  for (std::size_t i = 0; i < rates.lines.size(); ++i) {
    const PacketSenders::SendingEnd& end = senders_.end(phase.connections[i]);
    const std::uint64_t order =
        end.sending == kNoIndex ? kNeverWindow : messages_[end.sending].order;
    if (order != rates.lines[i].order) {
      return 0;
    }
    if (rates.lines[i].packets > 0) {
      const std::int64_t unsent = end.unsent / fabric_.options().mtu.count();
      most = std::min(most, (unsent - 1) / rates.lines[i].packets);
      is_moving = true;
    }
  }
  std::vector<Due> under_way;
  for (const auto& worker : workers_) {
    worker->list_under_way([&](std::uint32_t port) { return claims_[port].phase == number; },
                           under_way);
  }
  const bool ends = std::ranges::any_of(under_way, [](const Due& due) {
    return due.packet.has(Packet::kEndsMessage) && !due.packet.has(Packet::kControl);
  });
  most = is_moving && !ends ? most_queued(phase, most) : 0;
  return most < kLeastSettled ? 0 : most;
}

// The same, for queues and buffers.
std::int64_t PacketPhases::most_queued(const Phase& phase, std::int64_t most) const {
  const SettledRates& rates = *phase.repeat->settled;
  const auto full = fabric_.sizes().full;
  auto next = rates.queues.begin();
  std::map<std::uint32_t, std::int64_t> growth;  // Bytes in a period, by switch.
  for (std::size_t i = 0; i < phase.ports.size(); ++i) {
    const Port& port = fabric_.ports()[phase.ports[i]];
    const bool changes = next != rates.queues.end() && next->place == i;
    most = std::min(most, trainyard::most_periods(port.queue, changes ? &*next : nullptr));
    if (!changes) {
      continue;
    }
    if (next->growth > 0 && port.mark_above != std::numeric_limits<std::int64_t>::max()) {
      most = std::min(most, std::max<std::int64_t>(port.mark_above - port.queued_bytes, 0) /
                                (next->growth * full));
    }
    if (port.node != kNoIndex) {
      growth[port.node] += next->growth * full;
    }
    ++next;
  }
  for (const auto& [node, bytes] : growth) {
    const SwitchLoad& load = fabric_.loads()[node];
    if (bytes > 0) {
      most = std::min(most, std::max<std::int64_t>(load.limit - load.held, 0) / bytes);
    }
  }
  return most;
}

// Counts what connections and ports do in so many periods; nothing if queues grow by what never
// came.
std::optional<PacketPhases::Passed> PacketPhases::passed_in(const Phase& phase,
                                                            std::int64_t periods) const {
  const SettledRates& rates = *phase.repeat->settled;
  const auto full = static_cast<std::uint16_t>(fabric_.sizes().full);
  Passed passed{.ports = std::vector<QueueShift>(fabric_.ports().size()),
                .queues = std::vector<QueueShifts>(fabric_.ports().size())};
  for (const SettledRates::Queue& queue : rates.queues) {
    const std::uint32_t port = phase.ports[queue.place];
    passed.queues[port] = shifts_of(fabric_.ports()[port].queue, queue, periods, full);
  }
  for (std::size_t i = 0; i < rates.lines.size(); ++i) {
    const std::uint32_t id = phase.connections[i];
    QueueShift flow{.packets = rates.lines[i].packets * periods,
                    .bytes = rates.lines[i].packets * periods * full};
    for (std::size_t hop = 0; hop < senders_.end(id).hops; ++hop) {
      const std::uint32_t port = lines_[id].path[hop];
      const QueueShifts& shifts = passed.queues[port];
      if (const auto own = shifts.find(id); own != shifts.end()) {
        flow.packets -= own->second.packets;
        flow.bytes -= own->second.bytes;
      }
      if (flow.packets < 0) {
        return std::nullopt;
      }
      passed.ports[port].packets += flow.packets;
      passed.ports[port].bytes += flow.bytes;
    }
    passed.lines.push_back(flow.packets);
  }
  return passed;
}

// Ports and connections come to be what they are after so many periods. How many these are.
std::int64_t PacketPhases::move_settled(Phase& phase, std::int64_t periods) {
  const auto passed = periods > 0 ? passed_in(phase, periods) : std::nullopt;
  if (!passed) {
    return 0;
  }
  const SettledRates& rates = *phase.repeat->settled;
  const Picoseconds by = periods * rates.period;
  const std::int64_t mtu = fabric_.options().mtu.count();
  for (std::size_t i = 0; i < rates.lines.size(); ++i) {
    const std::uint32_t id = phase.connections[i];
    const std::int64_t packets = rates.lines[i].packets * periods;
    senders_.skip(id, static_cast<std::uint32_t>(packets), 0, senders_.end(id).next_start + by);
    senders_.shorten(id, packets * mtu);
    const std::uint32_t acks =
        targets_.answer_skipped(id, static_cast<std::uint32_t>(passed->lines[i]));
    counts_.acks += acks;
    for (std::size_t hop = senders_.end(id).hops; hop < lines_[id].path.size(); ++hop) {
      fabric_.ports()[lines_[id].path[hop]].counters.bytes +=
          acks * static_cast<std::uint64_t>(fabric_.sizes().ack);
    }
  }
  for (const SettledRates::Queue& queue : rates.queues) {
    const std::uint32_t port = phase.ports[queue.place];
    move_queue(port, queue, periods, passed->queues[port]);
  }
  for (const std::uint32_t index : phase.ports) {
    Port& port = fabric_.ports()[index];
    const QueueShift& flow = passed->ports[index];
    port.counters.packets += static_cast<std::uint64_t>(flow.packets);
    port.counters.bytes += static_cast<std::uint64_t>(flow.bytes);
    counts_.skipped_hops += static_cast<std::uint64_t>(flow.packets);
    port.free_at += by;
    port.leaving.time += by;
    if (port.source != kNoIndex) {
      senders_.shift(port.source, by);
    }
  }
  counts_.skip_error = std::max(counts_.skip_error, rates.error);
  phase.settling.rates = rates;
  phase.settling.before = phase.repeat->states.back();
  phase.patience = 0;
  return periods;
}

void PacketPhases::move_queue(std::uint32_t index, const SettledRates::Queue& rates,
                              std::int64_t periods, const QueueShifts& shifts) {
  Port& port = fabric_.ports()[index];
  const auto full = static_cast<std::uint16_t>(fabric_.sizes().full);
  std::int64_t packets = 0;
  std::int64_t bytes = 0;
  for (const auto& [connection, change] : shifts) {
    packets += change.packets;
    bytes += change.bytes;
  }
  shift(port.queue, rates, periods, full, [&](std::uint32_t id) {
    const PacketSenders::SendingEnd& end = senders_.end(id);
    const auto hop = static_cast<std::uint32_t>(std::ranges::find(lines_[id].path, index) -
                                                lines_[id].path.begin());
    return Packet{.connection = id,
                  .position = end.path + hop,
                  .sequence = end.sequence,
                  .left = static_cast<std::uint8_t>(end.hops - hop)};
  });
  port.queued_bytes += bytes - packets * fabric_.sizes().around_frame;
  port.counters.max_queued = std::max(port.counters.max_queued, port.queued_bytes);
  if (port.node != kNoIndex) {
    fabric_.loads()[port.node].held += bytes;
  }
}

}  // namespace trainyard
