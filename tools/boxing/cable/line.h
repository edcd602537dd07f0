// SPDX-License-Identifier: Apache-2.0
// One direction of a cable with the port before it, in virtual time: a frame waits for those before
// it, leaves at the rate of the line, and arrives after the delay, or is lost. Where the kernel has
// no netem, this is what stands in for it.
//
//   waiting(t)  = max(0, free_at - t) * rate / 8            bytes at the port
//   dropped     if waiting(t) + frame > queue
//   marked      if waiting(t) >= mark_from, and its sender takes part in ECN (RFC 3168)
//   arrives     = max(t, free_at) + 8 * (frame + 24) / rate + delay
//
// Lost frames take their time on the line, as those that a receiver discards do.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>

namespace trainyard::box {

// Preamble, check sequence and gap of Ethernet, which a frame here does not have (IEEE 802.3).
constexpr std::int64_t kOverheadBytes = 24;

struct LineOptions {
  std::int64_t bits_per_second = 0;  // 0: the line takes no time, and nothing waits.
  std::int64_t queue_bytes = 131072;
  std::int64_t delay_ns = 0;
  std::int64_t mark_from_bytes = 0;  // 0: never marks.
  double loss = 0.0;                 // The probability of each frame of IPv4, from 0 to 1.
  std::uint64_t seed = 1;
};

struct LineCounts {
  std::int64_t frames = 0;  // That came, with those dropped and lost.
  std::int64_t bytes = 0;
  std::int64_t dropped = 0;  // For want of room at the port.
  std::int64_t lost = 0;
  std::int64_t marked = 0;
  std::int64_t most_waiting_bytes = 0;
};

class Line {
 public:
  explicit Line(const LineOptions& options) : options_(options), random_(options.seed) {}

  // When the frame arrives at the other end, in ns of the clock of `now_ns`, which never goes back;
  // nothing if it does not. May mark the frame. Times of arrival rise.
  std::optional<std::int64_t> send(std::int64_t now_ns, std::span<unsigned char> frame);

  const LineCounts& counts() const { return counts_; }

 private:
  bool is_lost();

  LineOptions options_;
  LineCounts counts_;
  std::mt19937_64 random_;
  std::int64_t free_at_ns_ = 0;
};

// Sets "congestion experienced" in a frame of IPv4 whose sender takes part in ECN, and corrects the
// check sum of its header. False, and nothing is changed, for all others.
bool mark(std::span<unsigned char> frame);

bool is_ipv4(std::span<const unsigned char> frame);

}  // namespace trainyard::box
