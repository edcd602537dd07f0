// SPDX-License-Identifier: Apache-2.0
// TCP's CUBIC (RFC 9438), with the HyStart of Linux (Ha and Rhee, PFLDnet 2008;
// net/ipv4/tcp_cubic.c). hw/control/tcp_window.h has what it shares with Reno.
//
//   W(t) = C (t - K)^3 + Wmax,  K = cbrt((Wmax - W0) / C),  t since the cut, in seconds
//   target = W(t + RTT) between W and 1.5 W;  W += (target - W) / W for each packet
//   Reno-friendly: W_est += a x acknowledged / W,  a = 3 (1 - beta) / (1 + beta), and 1 from the
//   window before the cut on;  where W(t) < W_est, W = W_est
//   fast convergence: where W at a loss is below the last Wmax, Wmax = W (1 + beta) / 2
//
// HyStart ends slow start from 16 packets on, where eight ACKs of a round trip all took an eighth
// longer than the least round trip (4 to 16 ms longer), or where ACKs that follow each other within
// 2 ms have come for half of the least round trip.
//
// Only +, -, x and /, which IEEE 754 fixes; the cube root is Newton's.
#pragma once

#include <string_view>

#include "hw/control/control_terms.h"
#include "hw/control/tcp_window.h"
#include "sim/units.h"

namespace trainyard {

// Returns that of a number that is not negative, to within a few units in the last place.
[[nodiscard]] double cube_root(double value);

struct CubicSettings {
  double first_window = 10.0;  // Packets.
  double beta = 0.7;           // A loss leaves this share of the window.
  double c = 0.4;              // C: packets a second cubed.
  bool fast_convergence = true;
  bool hystart = true;
};

// `settings` must outlive it.
class Cubic {
 public:
  explicit Cubic(const CubicSettings& settings)
      : settings_(&settings), window_(settings.first_window) {}

  void on_ack(const AckSignal& ack, Bytes packet);
  void on_loss();
  void on_timeout();

  [[nodiscard]] const TcpWindow& window() const { return window_; }
  // The window that growth comes back to, in packets.
  [[nodiscard]] double origin() const { return origin_; }

 private:
  void grow(SimTime now, double packets);
  void begin_epoch(SimTime now);
  void remember(double window);  // The window before a cut.
  void look_for_queue(const AckSignal& ack, bool begins_round);

  const CubicSettings* settings_;
  TcpWindow window_;
  double last_most_ = 0.0;  // The window at the last loss, less what fast convergence gives up.
  double before_cut_ = 0.0;
  double origin_ = 0.0;    // Wmax of this epoch.
  double k_ = 0.0;         // Seconds.
  double estimate_ = 0.0;  // W_est
  SimTime epoch_{};
  bool has_epoch_ = false;

  SimTime least_rtt_ = SimTime::max();
  SimTime round_{};       // When the round began.
  SimTime last_close_{};  // The last ACK of those that follow each other.
  SimTime round_rtt_ = SimTime::max();
  int samples_ = 0;
};

struct CubicProfile {
  CubicSettings settings{};
};

struct CubicControl : ControlDefaults {
  using Profile = CubicProfile;
  using Settings = CubicSettings;
  using Sender = Cubic;
  static constexpr std::string_view kName = "cubic";

  static void fields(Fields& fields, CubicProfile& profile);
  static CubicSettings settings(const CubicProfile& profile, const PortTerms& /*port*/) {
    return profile.settings;
  }
  static ControlTraits traits(const CubicProfile& /*profile*/) {
    return {.packets_per_ack = 1, .needs_ack_times = false};
  }

  static void on_ack(Cubic& flow, const AckSignal& ack, const PortTerms& port) {
    flow.on_ack(ack, port.packet);
  }
  static void on_loss(Cubic& flow, SimTime /*now*/) { flow.on_loss(); }
  static void on_timeout(Cubic& flow, SimTime /*now*/) { flow.on_timeout(); }
  static Bytes window(const Cubic& flow, const PortTerms& port) {
    return flow.window().bytes(port.packet);
  }
};

}  // namespace trainyard
