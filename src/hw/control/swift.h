// SPDX-License-Identifier: Apache-2.0
// Swift (Kumar et al., SIGCOMM 2020): a window in packets that follows the delay to a target. One
// window for the fabric, whose target grows with hops and with small windows, and one for the
// receiving host; the smaller one holds. Below one packet the sender paces: one packet in
// RTT/window.
//
//   target = base + hops x h + clamp(a / sqrt(w) + b, 0, range)
//            a = range / (1/sqrt(fs_min) - 1/sqrt(fs_max)),  b = -a / sqrt(fs_max)
//   delay < target:  w += ai x acked / w,  or ai x acked where w < 1
//   otherwise, at most once an RTT:  w *= max(1 - beta (delay - target) / delay, 1 - max_mdf)
//
// Windows are real numbers, as in the paper. Only +, -, x, / and sqrt, which IEEE 754 fixes.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "hw/control/control_terms.h"
#include "sim/units.h"

namespace trainyard {

struct SwiftSettings {
  double additive = 1.0;  // ai: packets for each RTT.
  double beta = 0.8;
  double max_decrease = 0.5;  // max_mdf
  SimTime base_target = microseconds(25);
  SimTime hop_target = microseconds(1);  // h
  SimTime flow_range = microseconds(50);
  double flow_min = 0.1;    // fs_min
  double flow_max = 100.0;  // fs_max
  SimTime host_target{};    // Of the receiving host's delay; 0: no window for it.
  double first_window = 10.0;
  double min_window = 0.001;
  double max_window = 1000.0;
  int reset_timeouts = 5;  // So many timeouts in a row set the least window.
};

// `settings` must outlive it.
class Swift {
 public:
  explicit Swift(const SwiftSettings& settings);

  // `packets` are newly acknowledged.
  void on_ack(const AckSignal& ack, double packets);
  // One that tells no delay: timeouts are in a row only if no ACK at all comes between them.
  void on_any_ack() { timeouts_ = 0; }
  // A lost packet has been found by its successors.
  void on_loss(SimTime now);
  void on_timeout(SimTime now);

  // In packets.
  [[nodiscard]] double window() const { return host_ < fabric_ ? host_ : fabric_; }
  // From one packet to the next where the window is below one; otherwise 0.
  [[nodiscard]] SimTime pacing_delay() const;
  // The target of the fabric delay at the present window.
  [[nodiscard]] SimTime target(int hops) const { return SimTime(std::llround(exact_target(hops))); }
  // Whether a decrease would be heeded at `now`.
  [[nodiscard]] bool can_decrease(SimTime now, SimTime rtt) const {
    return !has_decreased_ || now - decreased_ >= rtt;
  }

 private:
  [[nodiscard]] double exact_target(int hops) const;  // Picoseconds.
  // The window after an ACK with `delay` against `target`, both in picoseconds.
  [[nodiscard]] double updated(double window, double delay, double target, double packets,
                               bool can_decrease) const;
  [[nodiscard]] double bounded(double window) const;
  void back_off(SimTime now);

  const SwiftSettings* settings_;
  double a_;
  double b_;
  double fabric_;
  double host_;
  SimTime decreased_{};
  SimTime rtt_{};
  int timeouts_ = 0;
  bool has_decreased_ = false;
};

// Windows in units of line rate x base RTT.
struct SwiftProfile {
  SwiftSettings settings{};
  double first_window = 1.0;
  double max_window = 2.0;
};

struct SwiftControl : ControlDefaults {
  using Profile = SwiftProfile;
  using Settings = SwiftSettings;
  using Sender = Swift;
  static constexpr std::string_view kName = "swift";

  static void fields(Fields& fields, SwiftProfile& profile);
  static SwiftSettings settings(const SwiftProfile& profile, const PortTerms& port);
  static ControlTraits traits(const SwiftProfile& /*profile*/) { return {.packets_per_ack = 1}; }

  static void on_ack(Swift& flow, const AckSignal& ack, const PortTerms& port) {
    flow.on_ack(ack,
                static_cast<double>(ack.size.count()) / static_cast<double>(port.packet.count()));
  }
  static void on_any_ack(Swift& flow) { flow.on_any_ack(); }
  static void on_loss(Swift& flow, SimTime now) { flow.on_loss(now); }
  static void on_timeout(Swift& flow, SimTime now) { flow.on_timeout(now); }
  static Bandwidth rate(const Swift& flow, SimTime now, const PortTerms& port);
  static bool pauses(const Swift& flow) { return flow.pacing_delay() > SimTime(); }
  static Bytes window(const Swift& flow, const PortTerms& port) {
    const auto packet = static_cast<double>(port.packet.count());
    return Bytes(static_cast<std::int64_t>(flow.window() * packet));
  }
};

}  // namespace trainyard
