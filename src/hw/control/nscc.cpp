// SPDX-License-Identifier: Apache-2.0
#include "hw/control/nscc.h"

#include <algorithm>

#include "hw/control/control_fields.h"
#include "sim/check.h"

namespace trainyard {
namespace {

// Bytes that a port sends in so many picoseconds.
double bytes_in(Bandwidth rate, double picoseconds) {
  return static_cast<double>(rate.bits_per_second()) / 8e12 * picoseconds;
}

}  // namespace

Nscc::Nscc(const NsccSettings& settings)
    : settings_(&settings),
      scale_(static_cast<double>(settings.port.packet.count()) *
             bytes_in(settings.port.line, settings.port.base_rtt.real_picoseconds()) /
             bytes_in(settings.reference_rate, settings.reference_rtt.real_picoseconds())),
      target_(settings.target.real_picoseconds()),
      base_(settings.port.base_rtt.real_picoseconds()),
      window_(0.0) {
  CHECK(target_ > 0.0 && base_ > 0.0 && scale_ > 0.0, "no target, round trip or rate");
  window_ = largest_window();
}

double Nscc::largest_window() const {
  return settings_->max_window * bytes_in(settings_->port.line, base_);
}

void Nscc::bound() {
  const auto min = static_cast<double>(settings_->port.packet.count());
  window_ = std::max(min, std::min(window_, largest_window()));
}

void Nscc::average(double delay, bool is_marked) {
  constexpr double kShareOfBase = 0.25;
  const double sample = !is_marked && delay > target_ ? kShareOfBase * base_ : delay;
  average_ = settings_->delay_weight * sample + (1.0 - settings_->delay_weight) * average_;
}

bool Nscc::quick_adapt(SimTime now, bool is_loss, bool is_marked, double delay) {
  bool is_done = ignored_ < to_ignore_ && is_marked;
  if (!is_done && now > interval_end_) {
    const bool is_due = has_lost_ || is_loss || delay > settings_->qa_threshold * target_;
    const double gate = largest_window() / static_cast<double>(1 << settings_->qa_gate);
    if (interval_end_ > SimTime() && is_due && achieved_ < gate) {
      window_ = settings_->qa_scaling * achieved_;
      bound();
      to_ignore_ = in_flight_;
      ignored_ = 0.0;
      has_lost_ = false;
      is_done = true;
    }
    achieved_ = 0.0;
    interval_end_ = now + SimTime(static_cast<std::int64_t>(base_ + target_));
  }
  if (is_done) {
    increase_ = 0.0;
    received_ = 0.0;
  }
  return is_done;
}

void Nscc::increase_below_target(double size, double delay) {
  const bool is_low = delay < settings_->fast_delay.real_picoseconds();
  low_ = is_low ? low_ + size : 0.0;
  is_fast_ = is_low && (is_fast_ || low_ > window_);
  if (is_fast_) {
    window_ +=
        size * settings_->fi_scale * scale_ / static_cast<double>(settings_->port.packet.count());
    return;
  }
  const double b = target_ / settings_->reference_rtt.real_picoseconds();
  increase_ += settings_->alpha * b * scale_ * (1.0 - delay / target_) * size;
}

void Nscc::decrease(SimTime now) {
  is_fast_ = false;
  low_ = 0.0;
  if (average_ > target_ && (now - decreased_).real_picoseconds() > base_) {
    const double share = 1.0 - settings_->gamma * (average_ - target_) / average_;
    window_ *= std::max(share, 1.0 - settings_->max_decrease);
    bound();
    decreased_ = now;
  }
}

void Nscc::adjust(SimTime now) {
  window_ += increase_ / window_;
  if (now - adjusted_ >= settings_->port.base_rtt) {
    window_ += settings_->eta * scale_;
    adjusted_ = now;
  }
  increase_ = 0.0;
  received_ = 0.0;
}

void Nscc::on_ack(const AckSignal& ack) {
  const auto size = static_cast<double>(ack.size.count());
  base_ = std::min(base_, ack.rtt.real_picoseconds());
  const double delay = ack.rtt.real_picoseconds() - base_;
  average(delay, ack.is_marked);
  achieved_ += size;
  received_ += size;
  ignored_ += size;
  in_flight_ = static_cast<double>(ack.next - ack.acked);
  if (quick_adapt(ack.now, false, ack.is_marked, delay)) {
    return;
  }
  if (delay < target_) {
    if (!ack.is_marked) {
      increase_below_target(size, delay);
    }
  } else if (!ack.is_marked) {
    increase_ += settings_->fi * scale_ * size;
  } else {
    decrease(ack.now);
  }
  bound();
  const auto packets = settings_->port.packet * settings_->adjust_packets;
  if (received_ > static_cast<double>(packets.count()) ||
      ack.now - adjusted_ > settings_->port.base_rtt) {
    adjust(ack.now);
    bound();
  }
}

void Nscc::on_loss(SimTime now) {
  const auto packet = static_cast<double>(settings_->port.packet.count());
  ignored_ += packet;
  has_lost_ = true;
  if (!quick_adapt(now, true, true, 0.0)) {
    window_ -= packet;
    bound();
  }
}

void NsccControl::fields(Fields& fields, NsccProfile& profile) {
  constexpr int kMaxGate = 30;
  NsccSettings& settings = profile.settings;
  fields.required("target", profile.target, control::kSomeFactor,
                  "Target of the queueing delay, in base RTTs.");
  fields.required("most_window", settings.max_window, control::kSomeFactor,
                  "The largest window, in units of line rate x base RTT.");
  fields.required("delay_weight", settings.delay_weight, control::kShare,
                  "Weight of a new delay in the average.");
  fields.required("alpha", settings.alpha, control::kFactor,
                  "Growth by the delay below the target, in packets a window.");
  fields.required("fi", settings.fi, control::kFactor, "Fair increase, in packets a window.");
  fields.required("eta", settings.eta, control::kFactor, "Growth in packets a base RTT.");
  fields.required("fi_scale", settings.fi_scale, control::kFactor,
                  "Fast increase, as a share of what is acknowledged.");
  fields.required("fast_delay", settings.fast_delay, control::kTime,
                  "The delay below which fast increase begins.");
  fields.required("gamma", settings.gamma, control::kShare, "Strength of a decrease.");
  fields.required("max_decrease", settings.max_decrease, control::kShare,
                  "The share of the window that a decrease leaves at least.");
  fields.required("adjust_packets", settings.adjust_packets, control::kCount,
                  "Packets between two adjustments of the window.");
  fields.required("qa_threshold", settings.qa_threshold, control::kFactor,
                  "The delay that quick adapt acts on, in targets.");
  fields.required("qa_gate", settings.qa_gate, Cited{Whole{0, kMaxGate}},
                  "The power of two that divides the largest window for quick adapt.");
  fields.required("qa_scaling", settings.qa_scaling, control::kSomeFactor,
                  "The share of what came that quick adapt takes as window.");
  fields.required("reference_rate", settings.reference_rate, Cited{Rate{}},
                  "The rate of the network that the constants are for.");
  fields.required("reference_rtt", settings.reference_rtt, control::kSomeTime, "Its base RTT.");
}

NsccSettings NsccControl::settings(const NsccProfile& profile, const PortTerms& port) {
  NsccSettings settings = profile.settings;
  settings.port = port;
  const double target = port.base_rtt.real_picoseconds() * profile.target;
  settings.target = std::max(picoseconds(1), SimTime(static_cast<std::int64_t>(target)));
  return settings;
}

}  // namespace trainyard
