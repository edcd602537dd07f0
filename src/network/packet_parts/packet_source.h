// SPDX-License-Identifier: Apache-2.0
// Chooses which connection sends next at a port where connections begin: those that may send take
// turns, the others wait for their time. Idle connections cost nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "network/packet_parts/packet_port.h"

namespace trainyard {

class alignas(64) PacketSource {
 public:
  struct Waiting {
    Picoseconds time;
    std::uint64_t order;
    std::uint32_t connection;
  };

  PacketSource() { waiting_.reserve(kMinWaiting); }

  // `connection` may send from `time` on. It must not be here already. At equal times the least
  // `order` comes first: that of send() of the message.
  void wait(std::uint32_t connection, Picoseconds time, std::uint64_t order) {
    waiting_.push_back({.time = time, .order = order, .connection = connection});
    if (waiting_.size() > 1) [[unlikely]] {
      std::push_heap(waiting_.begin(), waiting_.end(), later);
    }
  }
  // `connection` may send at once, behind those that may already.
  void make_ready(std::uint32_t connection) { ready_.push(connection); }

  // If `connection` waits for a time after `now`, it may send from `time` on instead.
  void move(std::uint32_t connection, Picoseconds now, Picoseconds time) {
    for (Waiting& waiting : waiting_) {
      if (waiting.connection == connection && waiting.time > now) {
        waiting.time = time;
        std::make_heap(waiting_.begin(), waiting_.end(), later);
        return;
      }
    }
  }

  // Returns the time at which one of them may send; kNeverTime if there is none.
  [[nodiscard]] Picoseconds earliest() const {
    if (!ready_.empty()) {
      return 0;
    }
    return waiting_.empty() ? kNeverTime : waiting_.front().time;
  }
  // The connection whose turn it is at `now`, which must not be before earliest().
  [[nodiscard]] std::uint32_t first(Picoseconds now) {
    line_up(now);
    return ready_.front();
  }
  // Takes it out.
  [[nodiscard]] std::uint32_t take(Picoseconds now) {
    if (ready_.empty() && waiting_.size() == 1) [[likely]] {
      const std::uint32_t connection = waiting_.back().connection;
      waiting_.pop_back();
      return connection;
    }
    line_up(now);
    return ready_.pop();
  }

  // Those that may send, in their order, and those that wait, in none.
  [[nodiscard]] const Ring<std::uint32_t>& ready() const { return ready_; }
  [[nodiscard]] std::span<const Waiting> waiting() const { return waiting_; }
  // Everything is so much later, and the orders are new ones that rise like the old.
  template <typename OrderOf>
  void shift(Picoseconds by, const OrderOf& order_of) {
    for (Waiting& waiting : waiting_) {
      waiting.time += by;
      waiting.order = order_of(waiting.connection);
    }
  }

 private:
  void line_up(Picoseconds now) {
    while (!waiting_.empty() && waiting_.front().time <= now) {
      ready_.push(waiting_.front().connection);
      std::pop_heap(waiting_.begin(), waiting_.end(), later);
      waiting_.pop_back();
    }
  }

  // As many connections as keep those of another source out of the same line of a cache: ports of
  // different workers would wait for each other.
  static constexpr std::size_t kMinWaiting = 5;

  static bool later(const Waiting& a, const Waiting& b) {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }

  Ring<std::uint32_t> ready_;
  std::vector<Waiting> waiting_;  // A heap, the earliest first.
};

}  // namespace trainyard
