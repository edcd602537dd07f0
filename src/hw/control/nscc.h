// SPDX-License-Identifier: Apache-2.0
// NSCC, the network-signalled congestion control of Ultra Ethernet Transport: a window at the
// sender, led by the queueing delay and the ECN mark that each ACK brings.
//
//   delay = rtt - base, base the least round trip so far;  t the target of the delay
//   average = (1 - w) average + w x,  x = base / 4 for a delay above t without a mark, else delay
//
//   delay < t,  no mark:  W += alpha (1 - delay / t) acked / W
//   delay < t,  mark:     W stays
//   delay >= t, no mark:  W += fi acked / W
//   delay >= t, mark:     W *= max(1 - gamma (average - t) / average, 1 - max_decrease)
//                         if average > t, at most once in a base
//
// Increases are summed up and applied each `adjust_packets` packets, and at least each base RTT,
// which also adds eta. After a whole window of delays below `fast_delay` without a mark the window
// grows by fi_scale acked instead, until a larger delay comes. Quick adapt: at the end of an
// interval base + t, after a loss or a delay beyond qa_threshold t, a flow of which less than the
// largest window / 2^qa_gate came takes what came as its window, and ignores marks of what was in
// flight by then. The least window is one packet; the largest, and the first, is `max_window` x
// line rate x base.
//
// Increases are packets, scaled by a = line rate x base RTT / (reference rate x reference RTT);
// alpha also by b = t / reference RTT. The rules and the scaling are those of uec.cpp of
// ultraethernet/uet-htsim, the simulator of the Ultra Ethernet Consortium; what the receiving host
// and trimmed packets tell is left out. Windows are real numbers.
#pragma once

#include <cstdint>
#include <string_view>

#include "hw/control/control_terms.h"
#include "sim/units.h"

namespace trainyard {

struct NsccSettings {
  PortTerms port{};
  SimTime target{};  // t
  double max_window = 1.5;
  double delay_weight = 0.0125;  // w
  double alpha = 4.0;            // Packets per window without any delay.
  double fi = 5.0;               // Packets per window.
  double eta = 0.15;             // Packets per base RTT.
  double fi_scale = 0.25;
  SimTime fast_delay = microseconds(1);
  double gamma = 0.8;
  double max_decrease = 0.5;
  int adjust_packets = 8;
  double qa_threshold = 4.0;  // In targets.
  int qa_gate = 3;
  double qa_scaling = 1.0;  // The share of what came that quick adapt takes as window.
  Bandwidth reference_rate = gigabits_per_second(100);
  SimTime reference_rtt = microseconds(12);
};

// The sender of one flow. `settings` must outlive it.
class Nscc {
 public:
  explicit Nscc(const NsccSettings& settings);

  void on_ack(const AckSignal& ack);
  // A packet was lost, and is sent again.
  void on_loss(SimTime now);

  [[nodiscard]] double window() const { return window_; }          // Bytes.
  [[nodiscard]] double average_delay() const { return average_; }  // Picoseconds.
  [[nodiscard]] double largest_window() const;
  [[nodiscard]] bool is_fast() const { return is_fast_; }

 private:
  void average(double delay, bool is_marked);
  // Whether the event is dealt with: the window was taken anew, or the mark is of before that.
  bool quick_adapt(SimTime now, bool is_loss, bool is_marked, double delay);
  void increase_below_target(double size, double delay);
  void decrease(SimTime now);
  void adjust(SimTime now);
  void bound();

  const NsccSettings* settings_;
  double scale_;   // a x packet: bytes for each packet of an increase.
  double target_;  // Picoseconds.
  double base_;    // Picoseconds.
  double window_;
  double average_ = 0.0;
  double increase_ = 0.0;  // Bytes x bytes that are not applied yet.
  double received_ = 0.0;  // Bytes since the last adjustment.
  double low_ = 0.0;       // Bytes in a row with hardly a delay.
  double achieved_ = 0.0;  // Bytes in this interval of quick adapt.
  double in_flight_ = 0.0;
  double to_ignore_ = 0.0;
  double ignored_ = 0.0;
  SimTime interval_end_{};
  SimTime decreased_{};
  SimTime adjusted_{};
  bool is_fast_ = false;
  bool has_lost_ = false;
};

struct NsccProfile {
  NsccSettings settings{};  // Without what depends on the port.
  double target = 1.0;      // In units of the base RTT.
};

struct NsccControl : ControlDefaults {
  using Profile = NsccProfile;
  using Settings = NsccSettings;
  using Sender = Nscc;
  static constexpr std::string_view kName = "nscc";

  static void fields(Fields& fields, NsccProfile& profile);
  static NsccSettings settings(const NsccProfile& profile, const PortTerms& port);
  static ControlTraits traits(const NsccProfile& /*profile*/) {
    return {
        .packets_per_ack = 1, .marks = MarkSignal::Echoes, .marking = "nscc", .shares_rtt = true};
  }

  static void on_ack(Nscc& flow, const AckSignal& ack, const PortTerms& /*port*/) {
    flow.on_ack(ack);
  }
  static void on_loss(Nscc& flow, SimTime now) { flow.on_loss(now); }
  static void on_timeout(Nscc& flow, SimTime now) { flow.on_loss(now); }
  static Bytes window(const Nscc& flow, const PortTerms& /*port*/) {
    return Bytes(static_cast<std::int64_t>(flow.window()));
  }
};

}  // namespace trainyard
