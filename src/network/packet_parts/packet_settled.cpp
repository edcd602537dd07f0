// SPDX-License-Identifier: Apache-2.0
#include "network/packet_parts/packet_settled.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainyard {
namespace {

// A queue that changes by no more is only seen at another moment of its turns.
constexpr std::int64_t kTurns = 2;
// Packets that a queue keeps. An estimate: those of a few turns.
constexpr std::int64_t kKept = 32;

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

std::vector<std::pair<std::uint32_t, std::int64_t>> growth_of(const RateState::Place& first,
                                                              const RateState::Place& third) {
  std::vector<std::pair<std::uint32_t, std::int64_t>> more;
  for (const auto& [connection, waiting] : third.deep) {
    const auto before = first.deep.find(connection);
    const std::int64_t growth = waiting - (before == first.deep.end() ? 0 : before->second);
    if (growth > 0) {
      more.emplace_back(connection, growth);
    }
  }
  return more;
}

// The packets that come, in turns: each connection's as evenly as their number allows.
std::vector<std::uint32_t> turns_of(const SettledRates::Queue& rates, std::int64_t periods) {
  std::vector<std::uint32_t> turns;
  std::int64_t rounds = 0;
  for (const auto& [connection, growth] : rates.more) {
    rounds = std::max(rounds, growth * periods);
  }
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (const auto& [connection, growth] : rates.more) {
      const std::int64_t all = growth * periods;
      if ((round + 1) * all / rounds > round * all / rounds) {
        turns.push_back(connection);
      }
    }
  }
  return turns;
}

}  // namespace

bool has_changed(const RateState& first, const RateState& later) {
  return first.sends != later.sends || first.pending != later.pending ||
         !std::ranges::equal(first.lines, later.lines, {}, &RateState::Line::order,
                             &RateState::Line::order);
}

std::optional<SettledRates> settled_rates(const RateState& first, const RateState& second,
                                          const RateState& third, double tolerance) {
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
    if (std::abs(growth) <= kTurns) {
      continue;
    }
    const std::int64_t one = distance(first.places[i].packets, second.places[i].packets);
    const std::int64_t other = distance(second.places[i].packets, third.places[i].packets);
    look_at(one, other);
    rates.queues.push_back({.place = i, .passed = one + other, .growth = growth});
    if (growth > 0) {
      rates.queues.back().more = growth_of(first.places[i], third.places[i]);
    }
  }
  return is_settled ? std::optional(std::move(rates)) : std::nullopt;
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
  const std::int64_t end = first_end(queue);
  const bool has_end = end < queue.size();
  if (rates == nullptr || rates->growth >= 0) {
    return has_end ? 0 : std::numeric_limits<std::int64_t>::max();
  }
  if (has_end && rates->passed + rates->growth > 0) {
    return 0;  // What comes behind it would have to be known.
  }
  const std::int64_t most = std::min<std::int64_t>(end, queue.size());
  return std::max<std::int64_t>(most - kKept, 0) / -rates->growth;
}

QueueShifts shifts_of(const Ring<Packet>& queue, const SettledRates::Queue& rates,
                      std::int64_t periods, std::uint16_t full) {
  QueueShifts shifts;
  for (const auto& [connection, growth] : rates.more) {
    shifts[connection] = {.packets = growth * periods, .bytes = growth * periods * full};
  }
  for (std::int64_t i = 0; i < -rates.growth * periods; ++i) {
    const Packet& packet = queue.at(static_cast<std::uint32_t>(i));
    QueueShift& shift = shifts[packet.connection];
    --shift.packets;
    shift.bytes -= packet.wire;
  }
  return shifts;
}

void shift(Ring<Packet>& queue, const SettledRates::Queue& rates, std::int64_t periods,
           std::uint16_t full) {
  for (std::int64_t i = 0; i < -rates.growth * periods; ++i) {
    queue.pop();
  }
  std::map<std::uint32_t, Packet> last;
  for (std::uint32_t i = 0; i < queue.size(); ++i) {
    last[queue.at(i).connection] = queue.at(i);
  }
  for (const std::uint32_t connection : turns_of(rates, periods)) {
    Packet packet = last.at(connection);
    packet.wire = full;
    packet.flags = 0;
    queue.push(packet);
  }
}

}  // namespace trainyard
