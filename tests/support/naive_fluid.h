// SPDX-License-Identifier: Apache-2.0
// The flow model once more, as simply as it can be written, for comparison with
// network/flow/flow.h.
//
// From event to event: all rates by progressive filling from zero (raise all flows together; when a
// link is full, its flows stay where they are), all remaining bits less rate times time, in long
// double. As in the engine, the end of a message is rounded up to a picosecond and its connection
// sends the next one from there; everything else is real numbers.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "topology/graph/topology.h"
#include "topology/routing/routing.h"

namespace trainyard {

struct NaiveArrival {
  SimTime time;
  std::uint32_t connection;
};

class NaiveFluid {
 public:
  explicit NaiveFluid(const Topology& topology) : topology_(topology) {}

  std::uint32_t connect(std::vector<LinkId> path);
  // At the present time.
  void send(std::uint32_t connection, Bytes size);
  // Goes on to the next arrival and returns it, or to `limit` if nothing arrives up to then.
  std::optional<NaiveArrival> next_arrival(SimTime limit);
  [[nodiscard]] SimTime now() const { return now_; }

 private:
  struct Connection {
    std::vector<LinkId> path;
    SimTime latency;
    std::deque<Bytes> queue;    // The first is under way.
    long double bits_left = 0;  // Of the first.
    long double bits_per_ps = 0;
  };

  [[nodiscard]] static bool active(const Connection& connection);
  void begin(Connection& connection);
  void leave(std::uint32_t index);
  void fill();
  [[nodiscard]] SimTime end_of(const Connection& connection) const;
  void advance(SimTime time);

  const Topology& topology_;
  std::vector<Connection> connections_;
  std::multimap<SimTime, std::uint32_t> arrivals_;
  SimTime now_;
};

}  // namespace trainyard
