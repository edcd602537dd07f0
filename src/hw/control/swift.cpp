// SPDX-License-Identifier: Apache-2.0
#include "hw/control/swift.h"

#include <algorithm>
#include <cmath>

#include "hw/control/control_fields.h"
#include "sim/check.h"

namespace trainyard {
namespace {

// The rate of one packet in `time`.
Bandwidth one_in(Bytes packet, SimTime time) {
  __extension__ using Wide = __int128;
  constexpr Wide kBits = Wide{8} * 1'000'000'000'000;
  const Wide rate = kBits * packet.count() / time.picoseconds();
  return std::max(Bandwidth(1), Bandwidth(static_cast<std::int64_t>(rate)));
}

}  // namespace

Swift::Swift(const SwiftSettings& settings)
    : settings_(&settings),
      a_(settings.flow_range.real_picoseconds() /
         (1.0 / std::sqrt(settings.flow_min) - 1.0 / std::sqrt(settings.flow_max))),
      b_(-a_ / std::sqrt(settings.flow_max)),
      fabric_(settings.first_window),
      host_(settings.max_window) {
  CHECK(settings.flow_min > 0.0 && settings.flow_min < settings.flow_max,
        "flow scaling over no range");
  CHECK(settings.min_window > 0.0 && settings.min_window <= settings.max_window,
        "windows over no range");
}

double Swift::exact_target(int hops) const {
  const double flow =
      std::clamp(a_ / std::sqrt(fabric_) + b_, 0.0, settings_->flow_range.real_picoseconds());
  return settings_->base_target.real_picoseconds() +
         settings_->hop_target.real_picoseconds() * hops + flow;
}

double Swift::bounded(double window) const {
  return std::clamp(window, settings_->min_window, settings_->max_window);
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

void Swift::on_ack(const AckSignal& ack, double packets) {
  timeouts_ = 0;
  rtt_ = ack.rtt;
  const bool may = can_decrease(ack.now, ack.rtt);
  const double before = window();
  const SimTime fabric_delay = ack.rtt - ack.host_delay;
  fabric_ = updated(fabric_, fabric_delay.real_picoseconds(), exact_target(ack.hops), packets, may);
  if (settings_->host_target > SimTime()) {
    host_ = updated(host_, ack.host_delay.real_picoseconds(),
                    settings_->host_target.real_picoseconds(), packets, may);
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
    fabric_ = settings_->min_window;
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

void SwiftControl::fields(Fields& fields, SwiftProfile& profile) {
  constexpr Number kPackets{1e-6, 1e6};
  SwiftSettings& settings = profile.settings;
  fields.required("additive", settings.additive, Cited{kPackets}, "Packets more for each RTT.");
  fields.required("beta", settings.beta, control::kShare, "Strength of a decrease.");
  fields.required("max_decrease", settings.max_decrease, control::kShare,
                  "The share of the window that one decrease takes at most.");
  fields.required("base_target", settings.base_target, control::kSomeTime,
                  "Target of the fabric delay without hops.");
  fields.required("hop_target", settings.hop_target, control::kTime, "Target of each hop.");
  fields.required("flow_range", settings.flow_range, control::kTime,
                  "The most that small windows add to the target.");
  fields.required("flow_least", settings.flow_min, Cited{kPackets},
                  "The window that adds all of it, in packets.");
  fields.required("flow_most", settings.flow_max, Cited{kPackets},
                  "The window that adds nothing, in packets.");
  fields.required("host_target", settings.host_target, Cited{OrOff{SomeTime{}}},
                  "Target of the receiving host's delay.");
  fields.required("least_window", settings.min_window, Cited{Number{1e-6, 1.0}},
                  "The least window, in packets.");
  fields.required("reset_timeouts", settings.reset_timeouts, control::kCount,
                  "So many timeouts in a row set the least window.");
  fields.required("first_window", profile.first_window, control::kSomeFactor,
                  "The first window, in units of line rate x base RTT.");
  fields.required("most_window", profile.max_window, control::kSomeFactor,
                  "The largest window, in the same units.");
  fields.check([&](const ConfigNode& node) {
    const auto at_least = [&](std::string_view key, double min, double max) {
      static_cast<void>(node.required(key).required("value").as_number(min, max));
    };
    at_least("flow_most", settings.flow_min * 1.001, kPackets.max);
    at_least("most_window", profile.first_window, control::kMany);
  });
}

SwiftSettings SwiftControl::settings(const SwiftProfile& profile, const PortTerms& port) {
  SwiftSettings settings = profile.settings;
  const double packets =
      static_cast<double>(bdp(port).count()) / static_cast<double>(port.packet.count());
  settings.first_window = packets * profile.first_window;
  settings.max_window = packets * profile.max_window;
  return settings;
}

Bandwidth SwiftControl::rate(const Swift& flow, SimTime /*now*/, const PortTerms& port) {
  const SimTime delay = flow.pacing_delay();
  return delay > SimTime() ? std::min(one_in(port.packet, delay), port.line) : port.line;
}

}  // namespace trainyard
