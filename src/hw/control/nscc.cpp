// SPDX-License-Identifier: Apache-2.0
#include "hw/control/nscc.h"

#include <algorithm>

#include "hw/control/control_reader.h"
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
  return settings_->most_window * bytes_in(settings_->port.line, base_);
}

void Nscc::bound() {
  const auto least = static_cast<double>(settings_->port.packet.count());
  window_ = std::max(least, std::min(window_, largest_window()));
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

NsccProfile NsccControl::read(const ControlReader& reader) {
  constexpr double kMost = ControlReader::kMany;
  NsccProfile profile;
  NsccSettings& settings = profile.settings;
  profile.target = reader.number("target", 1e-3, kMost);
  settings.most_window = reader.number("most_window", 1e-3, kMost);
  settings.delay_weight = reader.share("delay_weight");
  settings.alpha = reader.number("alpha", 0.0, kMost);
  settings.fi = reader.number("fi", 0.0, kMost);
  settings.eta = reader.number("eta", 0.0, kMost);
  settings.fi_scale = reader.number("fi_scale", 0.0, kMost);
  settings.fast_delay = reader.time("fast_delay");
  settings.gamma = reader.share("gamma");
  settings.max_decrease = reader.share("max_decrease");
  settings.adjust_packets = reader.count("adjust_packets", 1, ControlReader::kMany);
  settings.qa_threshold = reader.number("qa_threshold", 0.0, kMost);
  constexpr int kMostGate = 30;
  settings.qa_gate = reader.count("qa_gate", 0, kMostGate);
  settings.qa_scaling = reader.number("qa_scaling", 1e-3, kMost);
  settings.reference_rate = reader.node("reference_rate").as_bandwidth();
  settings.reference_rtt = reader.some_time("reference_rtt");
  return profile;
}

NsccSettings NsccControl::settings(const NsccProfile& profile, const PortTerms& port) {
  NsccSettings settings = profile.settings;
  settings.port = port;
  const double target = port.base_rtt.real_picoseconds() * profile.target;
  settings.target = std::max(picoseconds(1), SimTime(static_cast<std::int64_t>(target)));
  return settings;
}

}  // namespace trainyard
