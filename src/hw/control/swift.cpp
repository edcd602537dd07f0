// SPDX-License-Identifier: Apache-2.0
#include "hw/control/swift.h"

#include <algorithm>
#include <cmath>

#include "hw/control/control_reader.h"
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

SwiftProfile SwiftControl::read(const ControlReader& reader) {
  constexpr double kMostPackets = 1e6;
  SwiftProfile profile;
  SwiftSettings& settings = profile.settings;
  settings.additive = reader.number("additive", 1e-6, kMostPackets);
  settings.beta = reader.share("beta");
  settings.max_decrease = reader.share("max_decrease");
  settings.base_target = reader.some_time("base_target");
  settings.hop_target = reader.time("hop_target");
  settings.flow_range = reader.time("flow_range");
  settings.flow_least = reader.number("flow_least", 1e-6, kMostPackets);
  settings.flow_most = reader.number("flow_most", settings.flow_least * 1.001, kMostPackets);
  const ConfigNode host = reader.node("host_target");
  settings.host_target = is_off(host) ? SimTime() : reader.some_time("host_target");
  settings.least_window = reader.number("least_window", 1e-6, 1.0);
  settings.reset_timeouts = reader.count("reset_timeouts", 1, ControlReader::kMany);
  profile.first_window = reader.number("first_window", 1e-3, ControlReader::kMany);
  profile.most_window = reader.number("most_window", profile.first_window, ControlReader::kMany);
  return profile;
}

SwiftSettings SwiftControl::settings(const SwiftProfile& profile, const PortTerms& port) {
  SwiftSettings settings = profile.settings;
  const double packets =
      static_cast<double>(bdp(port).count()) / static_cast<double>(port.packet.count());
  settings.first_window = packets * profile.first_window;
  settings.most_window = packets * profile.most_window;
  return settings;
}

void SwiftControl::on_ack(Swift& flow, const AckSignal& ack, const PortTerms& port) {
  const auto packet = static_cast<double>(port.packet.count());
  flow.on_ack({.now = ack.now,
               .rtt = ack.rtt,
               .fabric_delay = ack.rtt - ack.host_delay,
               .host_delay = ack.host_delay,
               .hops = ack.hops,
               .packets = static_cast<double>(ack.size.count()) / packet});
}

Bandwidth SwiftControl::rate(const Swift& flow, SimTime /*now*/, const PortTerms& port) {
  const SimTime delay = flow.pacing_delay();
  return delay > SimTime() ? std::min(one_in(port.packet, delay), port.line) : port.line;
}

}  // namespace trainyard
