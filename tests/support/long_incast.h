// SPDX-License-Identifier: Apache-2.0
// Long flows from one host each to one more host behind the same switch, on the packet
// engine, and what they do over time.
#pragma once

#include <cstdint>
#include <vector>

#include "network/packet/packet_engine.h"
#include "topology/graph/topology.h"

namespace trainyard {

struct LongIncast {
  std::uint32_t flows = 2;
  LinkSpec link{};  // Of every host.
  PacketOptions options{};
  // When flow i begins: starts[i], or somewhere in the first `spread` where there is none.
  std::vector<SimTime> starts{};
  std::vector<Bytes> sizes{};  // Of the first flows; others have no end.
  SimTime spread = microseconds(10);
  SimTime interval = microseconds(100);  // Between samples.
  std::uint64_t seed = 1;                // Of the starts.
};

struct IncastSample {
  SimTime time{};
  std::int64_t queue = 0;            // Bytes of frames that wait for the last link.
  std::vector<double> rates{};       // To which each flow is limited, bits per second.
  std::vector<std::int64_t> sent{};  // By each flow until now, bytes on the line.
};

// The samples at interval, 2 interval, ... until `time`.
struct IncastRun {
  std::vector<IncastSample> samples;
  PacketStats stats{};
  std::uint64_t pauses = 0;  // That reached the hosts.
  std::int64_t carried = 0;  // By the last link, bytes on the line.
};

[[nodiscard]] IncastRun run_long_incast(const LongIncast& incast, SimTime time);

// Over the samples after `from` until `to`.
struct IncastSummary {
  double queue_mean = 0.0;
  double queue_deviation = 0.0;  // Standard deviation.
  std::int64_t queue_min = 0;
  std::int64_t queue_max = 0;
  std::vector<double> rates{};  // Of each flow, bytes on the line over the time, bits per second.
  double share_error = 0.0;     // Of the flow that is furthest from the mean of all, in that mean.
  double used = 0.0;            // Of the rate of the last link.
};

[[nodiscard]] IncastSummary summarise(const LongIncast& incast, const IncastRun& run, SimTime from,
                                      SimTime to);

}  // namespace trainyard
