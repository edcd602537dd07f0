// SPDX-License-Identifier: Apache-2.0
// Queues and rates of the packet engine, looked at again and again.
//
// They are looked at on borders of windows: the first one not before each multiple of the interval.
// Where nothing happens for a while, all stays as it is and is looked at as if there were borders.
// The windows of a run follow from its links, so that the same run has the same samples. They are
// kept until the end of the run, which is given up with an error if they are too many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "network/contract/network.h"
#include "network/packet_parts/packet_port.h"
#include "sim/units.h"

namespace trainyard {

class PacketEngine;

// Limit for samples of queues and of rates together: half a gigabyte while the file is made.
inline constexpr std::size_t kMaxSamples = 5'000'000;

// Takes samples when the engine asks after each window.
class PacketSampler {
 public:
  // Samples at multiples of `interval`; never if that is zero.
  explicit PacketSampler(SimTime interval)
      : interval_(interval.picoseconds()), due_(interval_ > 0 ? interval_ : kNeverTime) {}

  [[nodiscard]] bool is_due(Picoseconds border) const { return border >= due_; }
  // The border at the end of a window. This and the others throw ConfigError for more samples than
  // kMaxSamples.
  void take_at(const PacketEngine& engine, Picoseconds border);
  // Takes the samples up to `border`, until which nothing happened.
  void take_until(const PacketEngine& engine, Picoseconds border);

  [[nodiscard]] bool is_on() const { return interval_ > 0; }
  // All so far, and a last one at `end`, the border of the last window.
  [[nodiscard]] PacketSamples samples(const PacketEngine& engine, Picoseconds end) const;

 private:
  // Returns whether there was anything to see.
  bool take(const PacketEngine& engine, Picoseconds time);

  Picoseconds interval_;
  Picoseconds due_;
  Picoseconds before_ = 0;
  std::vector<bool> was_seen_;      // Indexed by port: seen at the sample before.
  std::vector<std::int64_t> sent_;  // Payload by connection up to the sample before.
  PacketSamples samples_;
};

}  // namespace trainyard
