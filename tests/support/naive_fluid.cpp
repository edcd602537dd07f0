// SPDX-License-Identifier: Apache-2.0
#include "support/naive_fluid.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace trainyard {

std::uint32_t NaiveFluid::connect(std::vector<LinkId> path) {
  Connection connection;
  connection.latency = path_latency(topology_, path);
  connection.path = std::move(path);
  connections_.push_back(std::move(connection));
  return static_cast<std::uint32_t>(connections_.size() - 1);
}

bool NaiveFluid::active(const Connection& connection) {
  return !connection.queue.empty();
}

void NaiveFluid::begin(Connection& connection) {
  connection.bits_left = static_cast<long double>(connection.queue.front().count()) * 8;
}

// The first message has left. Those behind it that have nothing to carry leave with it.
void NaiveFluid::leave(std::uint32_t index) {
  Connection& connection = connections_[index];
  do {
    arrivals_.emplace(now_ + connection.latency, index);
    connection.queue.pop_front();
  } while (active(connection) && (connection.path.empty() || connection.queue.front() == Bytes(0)));
  if (active(connection)) {
    begin(connection);
  }
}

void NaiveFluid::send(std::uint32_t index, Bytes size) {
  Connection& connection = connections_[index];
  connection.queue.push_back(size);
  if (connection.queue.size() == 1) {
    begin(connection);
    if (connection.path.empty() || size == Bytes(0)) {
      leave(index);
    }
  }
}

void NaiveFluid::fill() {
  std::vector<long double> left(topology_.link_count());
  for (std::uint32_t link = 0; link < topology_.link_count(); ++link) {
    const Bandwidth rate = topology_.link(LinkId(link)).spec.bandwidth;
    left[link] = static_cast<long double>(rate.bits_per_second()) / 1e12L;
  }
  std::vector<bool> rising(connections_.size());
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    rising[i] = active(connections_[i]);
    connections_[i].bits_per_ps = 0;
  }
  while (std::ranges::find(rising, true) != rising.end()) {
    std::vector<int> flows(left.size(), 0);
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      for (const LinkId link : connections_[i].path) {
        flows[link.value()] += rising[i] ? 1 : 0;
      }
    }
    std::size_t fullest = left.size();
    for (std::size_t link = 0; link < left.size(); ++link) {
      if (flows[link] > 0 &&
          (fullest == left.size() || left[link] / flows[link] < left[fullest] / flows[fullest])) {
        fullest = link;
      }
    }
    const long double step = left[fullest] / flows[fullest];
    for (std::size_t link = 0; link < left.size(); ++link) {
      left[link] = std::max(0.0L, left[link] - step * flows[link]);
    }
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      if (rising[i]) {
        connections_[i].bits_per_ps += step;
        rising[i] =
            std::ranges::find(connections_[i].path, LinkId(static_cast<std::uint32_t>(fullest))) ==
            connections_[i].path.end();
      }
    }
  }
}

SimTime NaiveFluid::end_of(const Connection& connection) const {
  // An end that is whole but for the rounding of long double is that whole number.
  constexpr long double kSlack = 1e-4L;
  const long double picoseconds = connection.bits_left / connection.bits_per_ps;
  return now_ + SimTime(std::max<std::int64_t>(
                    0, static_cast<std::int64_t>(std::ceil(picoseconds - kSlack))));
}

void NaiveFluid::advance(SimTime time) {
  const auto elapsed = static_cast<long double>((time - now_).picoseconds());
  for (Connection& connection : connections_) {
    if (active(connection)) {
      connection.bits_left -= elapsed * connection.bits_per_ps;
    }
  }
  now_ = time;
}

std::optional<NaiveArrival> NaiveFluid::next_arrival(SimTime limit) {
  while (true) {
    fill();
    SimTime next_end = SimTime::max();
    for (const Connection& connection : connections_) {
      if (active(connection)) {
        next_end = std::min(next_end, end_of(connection));
      }
    }
    const SimTime next =
        arrivals_.empty() ? next_end : std::min(next_end, arrivals_.begin()->first);
    if (next > limit || next == SimTime::max()) {
      if (limit != SimTime::max()) {
        advance(limit);
      }
      return std::nullopt;
    }
    std::vector<std::uint32_t> leaving;
    for (std::uint32_t i = 0; i < connections_.size(); ++i) {
      if (active(connections_[i]) && end_of(connections_[i]) <= next) {
        leaving.push_back(i);
      }
    }
    advance(next);
    for (const std::uint32_t index : leaving) {
      leave(index);
    }
    if (!arrivals_.empty() && arrivals_.begin()->first <= now_) {
      const NaiveArrival arrival{.time = arrivals_.begin()->first,
                                 .connection = arrivals_.begin()->second};
      arrivals_.erase(arrivals_.begin());
      return arrival;
    }
  }
}

}  // namespace trainyard
