// SPDX-License-Identifier: Apache-2.0
#include "hw/control/bbr.h"

#include <algorithm>
#include <cmath>

#include "hw/control/control_fields.h"
#include "sim/random.h"

namespace trainyard {
namespace {

// The draft, sections 4.2.2, 4.3.2 and 4.3.4.
constexpr std::array kCycle{1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
constexpr double kGrowth = 1.25;
constexpr int kFlatRounds = 3;
constexpr double kSlow = 1.2e6 / 8e12;     // 1.2 Mb/s: below it, hosts send packet by packet.
constexpr double kQuantumTime = 1e9;       // 1 ms, in picoseconds.
constexpr double kMostQuantum = 65'536.0;  // 64 KiB
constexpr double kFirstRtt = 1e9;          // 1 ms, until a round trip is known.

double real(std::uint64_t bytes) {
  return static_cast<double>(bytes);
}

}  // namespace

Bbr::Bbr(const BbrSettings& settings)
    : settings_(&settings),
      window_(settings.first_window * static_cast<double>(settings.packet.count())),
      pacing_(settings.startup_gain * window_ / kFirstRtt) {}

double Bbr::bandwidth() const {
  return *std::max_element(best_.begin(), best_.end());
}

Bandwidth Bbr::rate(Bandwidth line) const {
  const double bits = pacing_ * 8e12;
  const auto most = static_cast<double>(line.bits_per_second());
  return Bandwidth(static_cast<std::int64_t>(std::clamp(bits, 1.0, most)));
}

double Bbr::gain() const {
  switch (mode_) {
    case BbrMode::Startup:
      return settings_->startup_gain;
    case BbrMode::Drain:
      return 1.0 / settings_->startup_gain;
    case BbrMode::ProbeBandwidth:
      return kCycle.at(cycle_);
    case BbrMode::ProbeRtt:
      break;
  }
  return 1.0;
}

double Bbr::path() const {
  const bool is_known = least_rtt_ != SimTime::max();
  return is_known ? bandwidth() * least_rtt_.real_picoseconds()
                  : settings_->first_window * packet();
}

// With three of the bursts that hosts hand to their NIC (the draft, sections 4.2.2 and 4.2.3.2).
double Bbr::in_flight(double gain) const {
  const double burst =
      pacing_ < kSlow ? packet()
                      : std::max(2.0 * packet(), std::min(pacing_ * kQuantumTime, kMostQuantum));
  return gain * path() + 3.0 * burst;
}

void Bbr::measure(const AckSignal& ack) {
  while (mark_count_ > 0 && ack.acked >= marks_.at(first_mark_).next) {
    const Mark& mark = marks_.at(first_mark_);
    if (ack.now > mark.time) {
      const double rate = real(ack.acked - mark.acked) / (ack.now - mark.time).real_picoseconds();
      best_.at(round_) = std::max(best_.at(round_), rate);
    }
    first_mark_ = (first_mark_ + 1) % kMarks;
    --mark_count_;
  }
  if (ack.next == ack.acked) {  // Nothing is under way: the next rate would be that of a pause.
    mark_count_ = 0;
    return;
  }
  const Mark& last = marks_.at((first_mark_ + mark_count_ + kMarks - 1) % kMarks);
  if (mark_count_ == 0 ||
      (mark_count_ < kMarks && ack.acked - last.acked >= (last.next - last.acked) / kMarks)) {
    marks_.at((first_mark_ + mark_count_) % kMarks) = {
        .time = ack.now, .acked = ack.acked, .next = ack.next};
    ++mark_count_;
  }
}

void Bbr::begin_round(const AckSignal& ack) {
  round_end_ = ack.next;
  if (!is_full_) {
    const double found = bandwidth();
    if (found >= full_ * kGrowth) {
      full_ = found;
      flat_rounds_ = 0;
    } else if (++flat_rounds_ >= kFlatRounds) {
      is_full_ = true;
    }
  }
  if (phase_ == Phase::Conserving) {
    phase_ = Phase::Recovery;
  }
  if (best_.at(round_) > 0.0) {  // As in Linux, only new rates take the place of old ones.
    round_ = (round_ + 1) % kRounds;
    best_.at(round_) = 0.0;
  }
}

void Bbr::enter_cycle(SimTime now) {
  mode_ = BbrMode::ProbeBandwidth;
  // Anywhere but at 3/4.
  const auto draw = mix64(static_cast<std::uint64_t>(now.picoseconds()) + 1) % (kCycle.size() - 1);
  cycle_ = draw == 0 ? 0 : draw + 1;
  cycle_time_ = now;
  has_lost_ = false;
}

// `before` was in flight before the ACK.
void Bbr::update_mode(const AckSignal& ack, double before) {
  if (mode_ == BbrMode::Startup && is_full_) {
    mode_ = BbrMode::Drain;
  }
  if (mode_ == BbrMode::Drain && real(ack.next - ack.acked) <= path()) {
    enter_cycle(ack.now);
  }
  if (mode_ != BbrMode::ProbeBandwidth) {
    return;
  }
  const bool is_long = ack.now - cycle_time_ > least_rtt_;
  const bool is_over = gain() > 1.0   ? is_long && (has_lost_ || before >= in_flight(gain()))
                       : gain() < 1.0 ? is_long || before <= path()
                                      : is_long;
  if (is_over) {
    cycle_ = (cycle_ + 1) % kCycle.size();
    cycle_time_ = ack.now;
    has_lost_ = false;
  }
}

void Bbr::update_rtt(const AckSignal& ack) {
  const bool is_old = ack.now - rtt_time_ > settings_->rtt_window;
  if (ack.rtt > SimTime() && (ack.rtt <= least_rtt_ || is_old)) {
    least_rtt_ = ack.rtt;
    rtt_time_ = ack.now;
  }
  if (is_old && !is_idle_ && mode_ != BbrMode::ProbeRtt) {
    mode_ = BbrMode::ProbeRtt;
    prior_ = phase_ == Phase::Open ? window_ : std::max(prior_, window_);
    is_low_ = false;
  }
  is_idle_ = ack.next == ack.acked;
}

void Bbr::probe_rtt(SimTime now) {
  if (!is_low_) {
    if (real(next_ - acked_) <= settings_->least_window * packet()) {
      is_low_ = true;
      probe_end_ = now + settings_->probe_time;
      probe_round_end_ = next_;
    }
    return;
  }
  if (now >= probe_end_ && acked_ >= probe_round_end_) {
    rtt_time_ = now;
    window_ = std::max(window_, prior_);
    if (is_full_) {
      enter_cycle(now);
    } else {
      mode_ = BbrMode::Startup;
    }
  }
}

void Bbr::on_ack(const AckSignal& ack) {
  // After a pause a measurement begins when its first packet is sent.
  if (mark_count_ == 0 && ack.acked > acked_ && ack.rtt > SimTime()) {
    marks_.at(first_mark_) = {.time = ack.now - ack.rtt, .acked = acked_, .next = ack.acked};
    mark_count_ = 1;
  }
  const double acked = real(ack.acked - acked_);
  const double before = real(ack.next - acked_);
  acked_ = ack.acked;
  next_ = ack.next;
  measure(ack);
  if (ack.acked >= round_end_) {
    begin_round(ack);
  }
  if (phase_ != Phase::Open && acked_ >= recover_) {
    leave_recovery();
  }
  update_mode(ack, before);
  update_rtt(ack);
  if (mode_ == BbrMode::ProbeRtt) {
    probe_rtt(ack.now);
  }
  set_rate(ack);
  set_window(acked);
}

void Bbr::set_rate(const AckSignal& ack) {
  if (!has_rtt_ && ack.rtt > SimTime()) {
    has_rtt_ = true;
    pacing_ =
        settings_->startup_gain * settings_->first_window * packet() / ack.rtt.real_picoseconds();
  }
  const double rate = gain() * bandwidth() * (1.0 - settings_->margin);
  if (is_full_ || rate > pacing_) {
    pacing_ = rate;
  }
}

void Bbr::set_window(double acked) {
  const double least = settings_->least_window * packet();
  if (phase_ == Phase::Conserving) {
    window_ = std::max(window_, real(next_ - acked_) + acked);
  } else {
    const bool is_cruising = mode_ == BbrMode::ProbeBandwidth || mode_ == BbrMode::ProbeRtt;
    const double target = in_flight(is_cruising ? settings_->window_gain : settings_->startup_gain);
    if (is_full_) {
      window_ = std::min(window_ + acked, target);
    } else if (window_ < target || real(acked_) < settings_->first_window * packet()) {
      window_ += acked;
    }
    window_ = std::max(window_, least);
  }
  if (mode_ == BbrMode::ProbeRtt) {
    window_ = std::min(window_, least);
  }
}

void Bbr::leave_recovery() {
  phase_ = Phase::Open;
  window_ = std::max(window_, prior_);
}

void Bbr::on_loss() {
  has_lost_ = true;
  if (phase_ != Phase::Open) {
    return;
  }
  prior_ = mode_ == BbrMode::ProbeRtt ? std::max(prior_, window_) : window_;
  phase_ = Phase::Conserving;
  recover_ = next_;
  round_end_ = next_;
  window_ = std::max(real(next_ - acked_), packet());
}

void Bbr::on_timeout() {
  prior_ =
      phase_ == Phase::Open && mode_ != BbrMode::ProbeRtt ? window_ : std::max(prior_, window_);
  phase_ = Phase::Timeout;
  recover_ = std::max(recover_, next_);
  full_ = 0.0;
  window_ = packet();
}

void BbrControl::fields(Fields& fields, BbrProfile& profile) {
  BbrSettings& settings = profile.settings;
  fields.required("first_window", settings.first_window, control::kPackets,
                  "The window at the start, in packets.");
  fields.required("startup_gain", settings.startup_gain, Cited{Number{1.001, control::kMany}},
                  "The gain at the start; that of drain is 1 over it.");
  fields.required("window_gain", settings.window_gain, control::kSomeFactor,
                  "Bytes in flight, in units of bandwidth x least round trip.");
  fields.required("least_window", settings.least_window, control::kPackets,
                  "The least window, and that of probe_rtt, in packets.");
  fields.required("margin", settings.margin, Cited{Number{0.0, 0.5}},
                  "The share by which the rate is below that of the model.");
  fields.required("rtt_window", settings.rtt_window, control::kSomeTime,
                  "The least round trip is measured anew after it.");
  fields.required("probe_time", settings.probe_time, control::kTime, "How long probe_rtt lasts.");
}

BbrSettings BbrControl::settings(const BbrProfile& profile, const PortTerms& port) {
  BbrSettings settings = profile.settings;
  settings.packet = port.packet;
  return settings;
}

}  // namespace trainyard
