// SPDX-License-Identifier: Apache-2.0
#include "network/packet_parts/packet_settled.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainyard {
namespace {

// A queue that changes by no more is only seen at another moment of its turns.
constexpr std::int64_t kTurns = 2;
// Estimates: packets that a queue keeps, those of a few turns, and that make it a long one.
constexpr std::int64_t kKept = 32;
constexpr std::int64_t kDeep = 64;

std::int64_t distance(std::uint64_t from, std::uint64_t to) {
  return static_cast<std::int64_t>(to - from);
}

// How far a rate may be off that gave so many in one interval and so many in the next: they differ,
// and each may be one off, as packets are not cut.
double error_of(std::int64_t one, std::int64_t other) {
  return static_cast<double>(std::abs(one - other) + 1) / static_cast<double>(one + other);
}

std::int64_t first_end(const Ring<Packet>& queue) {
  for (std::uint32_t i = 0; i < queue.size(); ++i) {
    if (queue.at(i).has(Packet::kEndsMessage)) {
      return i;
    }
  }
  return std::numeric_limits<std::int64_t>::max();
}

std::int64_t waiting_of(const RateState::Place& place, std::uint32_t connection) {
  const auto found = place.deep.find(connection);
  return found == place.deep.end() ? 0 : found->second;
}

// Sets what comes to each queue: what its connections send, less what queues before it grow by.
void set_arrivals(SettledRates& rates, const RateState& first, const RateState& third,
                  std::span<const RatePath> paths) {
  std::vector<SettledRates::Queue*> queues(first.places.size(), nullptr);
  for (SettledRates::Queue& queue : rates.queues) {
    queues[queue.place] = &queue;
  }
  for (std::size_t i = 0; i < rates.lines.size(); ++i) {
    const std::uint32_t connection = paths[i].connection;
    std::int64_t flow = rates.lines[i].packets;
    for (const std::size_t place : paths[i].places) {
      if (queues[place] != nullptr && flow > 0) {
        queues[place]->came.emplace_back(connection, flow);
      }
      if (queues[place] != nullptr) {
        flow -= waiting_of(third.places[place], connection) -
                waiting_of(first.places[place], connection);
      }
    }
  }
}

// The queue after so many periods: how many of its packets stay, and whose come behind them. Each
// connection's come as evenly as their number allows.
struct LaterQueue {
  std::int64_t staying;
  std::vector<std::uint32_t> turns;
};

LaterQueue later(const Ring<Packet>& queue, const SettledRates::Queue& rates,
                 std::int64_t periods) {
  const std::int64_t size = queue.size();
  LaterQueue all{.staying = std::max<std::int64_t>(size - rates.passed * periods, 0), .turns = {}};
  const std::int64_t count = size + rates.growth * periods - all.staying;
  std::int64_t sum = 0;
  for (const auto& [connection, packets] : rates.came) {
    sum += packets;
  }
  std::vector<std::int64_t> credit(rates.came.size(), 0);
  while (sum > 0 && static_cast<std::int64_t>(all.turns.size()) < count) {
    for (std::size_t i = 0; i < credit.size(); ++i) {
      credit[i] += rates.came[i].second;
      if (2 * credit[i] >= sum && static_cast<std::int64_t>(all.turns.size()) < count) {
        credit[i] -= sum;
        all.turns.push_back(rates.came[i].first);
      }
    }
  }
  return all;
}

}  // namespace

bool has_changed(const RateState& first, const RateState& later) {
  return first.sends != later.sends || first.pending != later.pending ||
         !std::ranges::equal(first.lines, later.lines, {}, &RateState::Line::order,
                             &RateState::Line::order);
}

std::optional<SettledRates> settled_rates(const RateState& first, const RateState& second,
                                          const RateState& third, std::span<const RatePath> paths,
                                          double tolerance) {
  SettledRates rates{.period = third.time - first.time};
  bool is_settled = true;
  const auto look_at = [&](std::int64_t one, std::int64_t other) {
    rates.error = std::max(rates.error, error_of(one, other));
    is_settled = is_settled && rates.error <= tolerance;
  };
  for (std::size_t i = 0; i < first.lines.size(); ++i) {
    const std::uint32_t one = second.lines[i].sequence - first.lines[i].sequence;
    const std::uint32_t other = third.lines[i].sequence - second.lines[i].sequence;
    const bool is_sending = third.lines[i].order != kNeverWindow;
    if (is_sending) {
      look_at(one, other);
    }
    is_settled = is_settled && (is_sending || one + other == 0);
    rates.lines.push_back({.order = third.lines[i].order, .packets = std::int64_t{one} + other});
  }
  for (std::size_t i = 0; i < first.places.size(); ++i) {
    const std::int64_t growth = distance(first.places[i].waiting, third.places[i].waiting);
    if (std::abs(growth) <= kTurns && third.places[i].waiting < kDeep) {
      continue;
    }
    const std::int64_t one = distance(first.places[i].packets, second.places[i].packets);
    const std::int64_t other = distance(second.places[i].packets, third.places[i].packets);
    look_at(one, other);
    rates.queues.push_back({.place = i, .passed = one + other, .growth = growth});
  }
  if (!is_settled) {
    return std::nullopt;
  }
  set_arrivals(rates, first, third, paths);
  const bool is_known = std::ranges::all_of(rates.queues, [](const SettledRates::Queue& queue) {
    return !queue.came.empty() || queue.passed + queue.growth <= kTurns;
  });
  return is_known ? std::optional(std::move(rates)) : std::nullopt;
}

double drift(const SettledRates& before, const SettledRates& now) {
  double most = 0.0;
  for (std::size_t i = 0; i < std::min(before.lines.size(), now.lines.size()); ++i) {
    if (now.lines[i].order != kNeverWindow && before.lines[i].order == now.lines[i].order) {
      const double ratio =
          static_cast<double>(before.lines[i].packets) * static_cast<double>(now.period) /
          (static_cast<double>(now.lines[i].packets) * static_cast<double>(before.period));
      most = std::max(most, std::abs(ratio - 1.0));
    }
  }
  return most;
}

std::int64_t most_periods(const Ring<Packet>& queue, const SettledRates::Queue* rates) {
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  const std::int64_t end = first_end(queue);
  if (rates == nullptr) {
    return end == kAny ? kAny : 0;
  }
  std::int64_t most = kAny;
  if (end != kAny) {
    most = std::max<std::int64_t>(end - kKept, 0) / std::max<std::int64_t>(rates->passed, 1);
  }
  if (rates->growth < 0) {
    const std::int64_t left = std::max<std::int64_t>(queue.size() - kKept, 0);
    most = std::min(most, left / -rates->growth);
  }
  return most;
}

QueueShifts shifts_of(const Ring<Packet>& queue, const SettledRates::Queue& rates,
                      std::int64_t periods, std::uint16_t full) {
  QueueShifts shifts;
  const LaterQueue after = later(queue, rates, periods);
  for (std::int64_t i = 0; i < queue.size() - after.staying; ++i) {
    const Packet& packet = queue.at(static_cast<std::uint32_t>(i));
    QueueShift& shift = shifts[packet.connection];
    --shift.packets;
    shift.bytes -= packet.wire;
  }
  for (const std::uint32_t connection : after.turns) {
    QueueShift& shift = shifts[connection];
    ++shift.packets;
    shift.bytes += full;
  }
  return shifts;
}

void shift(Ring<Packet>& queue, const SettledRates::Queue& rates, std::int64_t periods,
           std::uint16_t full, const std::function<Packet(std::uint32_t)>& packet_of) {
  const LaterQueue after = later(queue, rates, periods);
  while (queue.size() > after.staying) {
    queue.pop();
  }
  for (const std::uint32_t connection : after.turns) {
    Packet packet = packet_of(connection);
    packet.wire = full;
    queue.push(packet);
  }
}

}  // namespace trainyard
