// SPDX-License-Identifier: Apache-2.0
// The windows of TCP have this in common: slow start, one cut for all losses of a window, a packet
// after a timeout (RFC 5681, RFC 6582), and no growth of a window that is not used (RFC 7661).
//
//   slow start, W < ssthresh:  W += what is acknowledged, so that it doubles each round trip
//   first loss:                ssthresh = W = max(beta W, 2); then no growth until all that was
//                              under way has been acknowledged
//   timeout:                   ssthresh = max(beta W, 2), W = 1
//
// Windows are real numbers of full packets. Packets under way are counted by the engine, so that
// the window is not inflated by duplicate ACKs as RFC 6582 has it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "hw/control/control_terms.h"
#include "sim/units.h"

namespace trainyard {

class TcpWindow {
 public:
  static constexpr double kLeast = 2.0;  // RFC 5681, equation 4: of ssthresh, in packets.
  static constexpr double kMost = 1e9;   // It keeps the bytes of a window within 64 bits.

  explicit TcpWindow(double first) : window_(first) {}

  struct Step {
    double packets = 0.0;  // Newly acknowledged.
    bool may_grow = false;
    bool begins_round = false;  // All that the last round began with has come.
  };

  Step on_ack(const AckSignal& ack, Bytes packet) {
    Step step{.packets = static_cast<double>(ack.acked - acked_) / real(packet)};
    peak_ = std::max(peak_, static_cast<double>(ack.next - acked_) / real(packet));
    acked_ = ack.acked;
    next_ = std::max(next_, ack.next);
    if (phase_ != Phase::Open && acked_ >= recover_) {
      phase_ = Phase::Open;
    }
    // As Linux has it: all of the window is used, and in slow start half of it.
    const bool is_used = in_slow_start() ? window_ < 2.0 * peak_ : window_ < peak_ + 1.0;
    step.may_grow = phase_ != Phase::Recovery && is_used;
    step.begins_round = acked_ >= round_end_;
    if (step.begins_round) {
      round_end_ = ack.next;
      peak_ = static_cast<double>(ack.next - acked_) / real(packet);
    }
    return step;
  }

  // Takes what it needs of `packets` to reach ssthresh, and leaves the rest.
  double start_slowly(double packets) {
    const double grown = std::min(window_ + packets, std::max(threshold_, window_));
    const double rest = packets - (grown - window_);
    set(grown);
    return rest;
  }

  // Returns whether this is the first loss of its window, and so cuts.
  bool on_loss(double beta) {
    if (phase_ != Phase::Open) {
      return false;
    }
    threshold_ = std::max(window_ * beta, kLeast);
    set(threshold_);
    enter(Phase::Recovery);
    return true;
  }
  // Returns whether this is the first timeout of its window.
  bool on_timeout(double beta) {
    const bool is_first = phase_ != Phase::Timeout;
    if (is_first) {
      threshold_ = std::max(window_ * beta, kLeast);
    }
    set(1.0);
    enter(Phase::Timeout);
    return is_first;
  }

  void set(double packets) { window_ = std::clamp(packets, 1.0, kMost); }
  void end_slow_start() { threshold_ = window_; }

  [[nodiscard]] double packets() const { return window_; }
  [[nodiscard]] double threshold() const { return threshold_; }
  [[nodiscard]] bool in_slow_start() const { return window_ < threshold_; }
  [[nodiscard]] bool in_recovery() const { return phase_ == Phase::Recovery; }
  [[nodiscard]] Bytes bytes(Bytes packet) const {
    return Bytes(static_cast<std::int64_t>(window_ * real(packet)));
  }

 private:
  enum class Phase : std::uint8_t { Open, Recovery, Timeout };

  static double real(Bytes bytes) { return static_cast<double>(bytes.count()); }
  void enter(Phase phase) {
    phase_ = phase;
    recover_ = next_;
  }

  double window_;
  double threshold_ = std::numeric_limits<double>::infinity();
  double peak_ = 0.0;  // The most packets under way in this round.
  std::uint64_t acked_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t round_end_ = 0;
  std::uint64_t recover_ = 0;
  Phase phase_ = Phase::Open;
};

}  // namespace trainyard
