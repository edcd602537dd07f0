// SPDX-License-Identifier: Apache-2.0
#include "hw/control/swift.h"

#include <algorithm>
#include <cmath>

#include "sim/check.h"

namespace trainyard {
Swift::Swift(const SwiftSettings& settings)
    : settings_(&settings),
      a_(settings.flow_range.real_picoseconds() /
         (1.0 / std::sqrt(settings.flow_least) - 1.0 / std::sqrt(settings.flow_most))),
      b_(-a_ / std::sqrt(settings.flow_most)),
      fabric_(settings.first_window),
      host_(settings.most_window) {
  CHECK(settings.flow_least > 0.0 && settings.flow_least < settings.flow_most,
        "flow scaling over no range");
  CHECK(settings.least_window > 0.0 && settings.least_window <= settings.most_window,
        "windows over no range");
}

double Swift::exact_target(int hops) const {
  const double flow =
      std::clamp(a_ / std::sqrt(fabric_) + b_, 0.0, settings_->flow_range.real_picoseconds());
  return settings_->base_target.real_picoseconds() +
         settings_->hop_target.real_picoseconds() * hops + flow;
}

double Swift::bounded(double window) const {
  return std::clamp(window, settings_->least_window, settings_->most_window);
}

double Swift::updated(double window, double delay, double target, double packets,
                      bool can_decrease) const {
  if (delay < target) {
    const double step = settings_->additive * packets;
    return bounded(window + (window >= 1.0 ? step / window : step));
  }
  if (!can_decrease) {
    return window;
  }
  const double share = 1.0 - settings_->beta * (delay - target) / delay;
  return bounded(window * std::max(share, 1.0 - settings_->max_decrease));
}

void Swift::on_ack(const SwiftAck& ack) {
  timeouts_ = 0;
  rtt_ = ack.rtt;
  const bool may = can_decrease(ack.now, ack.rtt);
  const double before = window();
  fabric_ = updated(fabric_, ack.fabric_delay.real_picoseconds(), exact_target(ack.hops),
                    ack.packets, may);
  if (settings_->host_target > SimTime()) {
    host_ = updated(host_, ack.host_delay.real_picoseconds(),
                    settings_->host_target.real_picoseconds(), ack.packets, may);
  }
  if (window() < before) {
    decreased_ = ack.now;
    has_decreased_ = true;
  }
}

void Swift::back_off(SimTime now) {
  if (!can_decrease(now, rtt_)) {
    return;
  }
  fabric_ = bounded(window() * (1.0 - settings_->max_decrease));
  decreased_ = now;
  has_decreased_ = true;
}

void Swift::on_loss(SimTime now) {
  timeouts_ = 0;
  back_off(now);
}

void Swift::on_timeout(SimTime now) {
  if (++timeouts_ >= settings_->reset_timeouts) {
    fabric_ = settings_->least_window;
    return;
  }
  back_off(now);
}

SimTime Swift::pacing_delay() const {
  const double packets = window();
  if (packets >= 1.0) {
    return {};
  }
  return SimTime(std::llround(rtt_.real_picoseconds() / packets));
}

}  // namespace trainyard
