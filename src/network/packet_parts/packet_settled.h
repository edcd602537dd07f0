// SPDX-License-Identifier: Apache-2.0
// Rates of long messages that have settled: what connections and ports did in one interval they did
// in the next one too, but for a packet or so, and no message began or was complete. Then they may
// be taken to go on like that. Queues that grow or drain meanwhile do so at their rates
// (network/packet/packet_settling.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "network/packet_parts/packet_port.h"

namespace trainyard {

// Counts what connections and ports have done up to an instant, each in an order that stays.
struct RateState {
  struct Line {
    std::uint64_t order;     // The message's that it sends; kNeverWindow if there is none.
    std::uint32_t sequence;  // Packets that it has sent, modulo 2^32.
  };
  struct Place {
    std::uint64_t packets;  // Packets that began.
    std::uint32_t waiting;
    std::map<std::uint32_t, std::int64_t> deep = {};  // Packets that wait, by connection.
  };

  Picoseconds time = 0;
  std::uint64_t sends = 0;                  // Messages that were sent before.
  std::vector<std::uint64_t> pending = {};  // Messages that are not complete, by number.
  std::vector<Line> lines = {};
  std::vector<Place> places = {};
};

// Rates, in packets of a period.
struct SettledRates {
  struct Line {
    std::uint64_t order;
    std::int64_t packets;
  };
  // A queue that grows or drains, or is long.
  struct Queue {
    std::size_t place;
    std::int64_t passed;  // Packets that leave it.
    std::int64_t growth;
    // Packets that come, by connection.
    std::vector<std::pair<std::uint32_t, std::int64_t>> came = {};
  };

  Picoseconds period = 0;
  double error = 0.0;  // No rate is further off than this part of it, if they have settled.
  std::vector<Line> lines = {};
  std::vector<Queue> queues = {};
};

// The places that a line takes.
struct RatePath {
  std::uint32_t connection;
  std::vector<std::size_t> places;
};

// Returns whether messages began or were complete in between.
[[nodiscard]] bool has_changed(const RateState& first, const RateState& later);
// The rates of three states at equal distances between which nothing has changed, if those of both
// intervals are the same up to this part of them.
[[nodiscard]] std::optional<SettledRates> settled_rates(const RateState& first,
                                                        const RateState& second,
                                                        const RateState& third,
                                                        std::span<const RatePath> paths,
                                                        double tolerance);
// The largest part by which a connection that sends the same message was faster or slower before.
[[nodiscard]] double drift(const SettledRates& before, const SettledRates& now);

// Changes of a queue, by connection: packets that came less those that left, and their bytes.
struct QueueShift {
  std::int64_t packets = 0;
  std::int64_t bytes = 0;
};
using QueueShifts = std::map<std::uint32_t, QueueShift>;

// Returns for how many periods a queue can go on without its last packets, or the end of a message,
// having their turn. `rates` is null for one that is short and stays so.
[[nodiscard]] std::int64_t most_periods(const Ring<Packet>& queue,
                                        const SettledRates::Queue* rates);
// Returns what changes in so many periods, at most as many as that: those at the head leave, and
// others come, which are full, in turns.
[[nodiscard]] QueueShifts shifts_of(const Ring<Packet>& queue, const SettledRates::Queue& rates,
                                    std::int64_t periods, std::uint16_t full);
// `packet_of` makes a packet of a connection that waits there.
void shift(Ring<Packet>& queue, const SettledRates::Queue& rates, std::int64_t periods,
           std::uint16_t full, const std::function<Packet(std::uint32_t)>& packet_of);

}  // namespace trainyard
