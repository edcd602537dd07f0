// SPDX-License-Identifier: Apache-2.0
#include "hw/control/cubic.h"

#include <algorithm>

#include "hw/control/control_fields.h"

namespace trainyard {
namespace {

using namespace literals;

// Linux, net/ipv4/tcp_cubic.c: hystart_low_window, HYSTART_MIN_SAMPLES, HYSTART_DELAY_MIN and MAX,
// hystart_ack_delta_us.
constexpr double kLeastWindow = 16.0;
constexpr int kSamples = 8;
constexpr SimTime kLeastDelay = 4_ms;
constexpr SimTime kMostDelay = 16_ms;
constexpr SimTime kClose = 2_ms;

double seconds_of(SimTime time) {
  return time.real_picoseconds() / 1e12;
}

double cube(double value) {
  return value * value * value;
}

}  // namespace

double cube_root(double value) {
  if (value <= 0.0) {
    return 0.0;
  }
  double scale = 1.0;  // Powers of two are exact.
  for (; value >= 1.0; scale *= 2.0) {
    value /= 8.0;
  }
  for (; value < 0.125; scale /= 2.0) {
    value *= 8.0;
  }
  double root = 0.4 + 0.6 * value;  // Within 20 % of the root from 1/8 to 1.
  for (int i = 0; i < 5; ++i) {     // Each iteration squares the error.
    root = (2.0 * root + value / (root * root)) / 3.0;
  }
  return root * scale;
}

void Cubic::on_ack(const AckSignal& ack, Bytes packet) {
  if (ack.rtt > SimTime()) {
    least_rtt_ = std::min(least_rtt_, ack.rtt);
  }
  const TcpWindow::Step step = window_.on_ack(ack, packet);
  if (settings_->hystart && window_.in_slow_start() && !window_.in_recovery()) {
    look_for_queue(ack, step.begins_round);
  }
  if (!step.may_grow) {
    return;
  }
  const double packets =
      window_.in_slow_start() ? window_.start_slowly(step.packets) : step.packets;
  if (packets > 0.0) {
    grow(ack.now, packets);
  }
}

void Cubic::begin_epoch(SimTime now) {
  has_epoch_ = true;
  epoch_ = now;
  estimate_ = window_.packets();
  origin_ = std::max(last_most_, window_.packets());
  k_ = cube_root((origin_ - window_.packets()) / settings_->c);
}

void Cubic::grow(SimTime now, double packets) {
  if (!has_epoch_) {
    begin_epoch(now);
  }
  const double window = window_.packets();
  const double beta = settings_->beta;
  const double share = estimate_ < before_cut_ ? 3.0 * (1.0 - beta) / (1.0 + beta) : 1.0;
  estimate_ += share * packets / window;
  const double elapsed = seconds_of(now - epoch_);
  if (origin_ + settings_->c * cube(elapsed - k_) < estimate_) {
    window_.set(std::max(window, estimate_));
    return;
  }
  const double rtt = least_rtt_ == SimTime::max() ? 0.0 : seconds_of(least_rtt_);
  const double target =
      std::clamp(origin_ + settings_->c * cube(elapsed + rtt - k_), window, 1.5 * window);
  window_.set(window + (target - window) / window * packets);
}

void Cubic::remember(double window) {
  before_cut_ = window;
  const bool gives_up = settings_->fast_convergence && window < last_most_;
  last_most_ = gives_up ? window * (1.0 + settings_->beta) / 2.0 : window;
  has_epoch_ = false;
}

void Cubic::on_loss() {
  const double before = window_.packets();
  if (window_.on_loss(settings_->beta)) {
    remember(before);
  }
}

void Cubic::on_timeout() {
  const double before = window_.packets();
  if (window_.on_timeout(settings_->beta)) {
    remember(before);
  }
  has_epoch_ = false;
}

void Cubic::look_for_queue(const AckSignal& ack, bool begins_round) {
  if (begins_round) {
    round_ = ack.now;
    last_close_ = ack.now;
    round_rtt_ = SimTime::max();
    samples_ = 0;
  }
  if (window_.packets() < kLeastWindow || least_rtt_ == SimTime::max()) {
    return;
  }
  if (ack.now - last_close_ <= kClose) {
    last_close_ = ack.now;
    if (2 * (ack.now - round_).picoseconds() > least_rtt_.picoseconds()) {
      window_.end_slow_start();
      return;
    }
  }
  if (samples_ < kSamples) {
    round_rtt_ = ack.rtt > SimTime() ? std::min(round_rtt_, ack.rtt) : round_rtt_;
    ++samples_;
  }
  if (samples_ == kSamples && round_rtt_ < SimTime::max() &&
      round_rtt_ - least_rtt_ >
          std::clamp(SimTime(least_rtt_.picoseconds() / 8), kLeastDelay, kMostDelay)) {
    window_.end_slow_start();
  }
}

void CubicControl::fields(Fields& fields, CubicProfile& profile) {
  CubicSettings& settings = profile.settings;
  fields.required("first_window", settings.first_window, control::kPackets,
                  "The window at the start, in packets.");
  fields.required("beta", settings.beta, control::kShare, "What a loss leaves of the window.");
  fields.required("c", settings.c, control::kSomeFactor,
                  "C, by which the window grows, in packets a second cubed.");
  fields.required("fast_convergence", settings.fast_convergence, control::kFlag,
                  "Whether a flow that is cut below its last maximum gives up more.");
  fields.required("hystart", settings.hystart, control::kFlag,
                  "Whether slow start ends before the first loss, as Linux has it.");
}

}  // namespace trainyard
