// SPDX-License-Identifier: Apache-2.0
// TCP's NewReno (RFC 5681, RFC 6582): slow start, then a packet more each round trip, and half the
// window at a loss. hw/control/tcp_window.h has what it shares with CUBIC.
//
//   W >= ssthresh:  W += acknowledged / W
//
// Its window is a sawtooth between Wmax / 2 and Wmax; with one loss each 1/p packets the mean is
// sqrt(3 / (2 p)) = 1.22 / sqrt(p) (Mathis et al., CCR 27(3), 1997).
#pragma once

#include <string_view>

#include "hw/control/control_terms.h"
#include "hw/control/tcp_window.h"
#include "sim/units.h"

namespace trainyard {

struct RenoSettings {
  double first_window = 10.0;  // Packets.
  double beta = 0.5;           // A loss leaves this share of the window.
};

// `settings` must outlive it.
class Reno {
 public:
  explicit Reno(const RenoSettings& settings)
      : settings_(&settings), window_(settings.first_window) {}

  void on_ack(const AckSignal& ack, Bytes packet) {
    const TcpWindow::Step step = window_.on_ack(ack, packet);
    if (!step.may_grow) {
      return;
    }
    const double packets =
        window_.in_slow_start() ? window_.start_slowly(step.packets) : step.packets;
    window_.set(window_.packets() + packets / window_.packets());
  }
  void on_loss() { window_.on_loss(settings_->beta); }
  void on_timeout() { window_.on_timeout(settings_->beta); }

  [[nodiscard]] const TcpWindow& window() const { return window_; }

 private:
  const RenoSettings* settings_;
  TcpWindow window_;
};

struct RenoProfile {
  RenoSettings settings{};
};

struct RenoControl : ControlDefaults {
  using Profile = RenoProfile;
  using Settings = RenoSettings;
  using Sender = Reno;
  static constexpr std::string_view kName = "reno";

  static void fields(Fields& fields, RenoProfile& profile);
  static RenoSettings settings(const RenoProfile& profile, const PortTerms& /*port*/) {
    return profile.settings;
  }
  static ControlTraits traits(const RenoProfile& /*profile*/) {
    return {.packets_per_ack = 1, .needs_ack_times = false};
  }

  static void on_ack(Reno& flow, const AckSignal& ack, const PortTerms& port) {
    flow.on_ack(ack, port.packet);
  }
  static void on_loss(Reno& flow, SimTime /*now*/) { flow.on_loss(); }
  static void on_timeout(Reno& flow, SimTime /*now*/) { flow.on_timeout(); }
  static Bytes window(const Reno& flow, const PortTerms& port) {
    return flow.window().bytes(port.packet);
  }
};

}  // namespace trainyard
