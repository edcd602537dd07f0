// SPDX-License-Identifier: Apache-2.0
// DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257) for flows that start at full speed, or slowly.
//
//   each window:  alpha = (1 - g) alpha + g F,  F the share of its bytes that were marked
//   at the first mark of a window:  W *= 1 - alpha / 2
//   a window without marks:  W += one packet;  with slow start, up to the first mark or loss and
//   below half of the window before a timeout:  W += what is acknowledged
//
// Window and alpha are real numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "hw/control/control_terms.h"
#include "sim/check.h"
#include "sim/units.h"

namespace trainyard {

struct DctcpSettings {
  double g = 1.0 / 16;
  double initial_alpha = 1.0;
  Bytes packet{4096};    // The growth after a window without marks.
  Bytes first_window{};  // Also the largest: line rate x base RTT.
  // Starts with ten packets (RFC 6928) instead, and doubles each round trip up to the first cut.
  bool slow_start = false;
};

// `settings` must outlive it.
class Dctcp {
 public:
  explicit Dctcp(const DctcpSettings& settings)
      : settings_(&settings),
        window_(static_cast<double>(settings.first_window.count())),
        alpha_(settings.initial_alpha) {
    CHECK(settings.first_window >= settings.packet && settings.packet > Bytes(0),
          "a window below one packet");
    if (settings.slow_start) {
      threshold_ = window_;
      set_window(10.0 * static_cast<double>(settings.packet.count()));
    }
  }

  // `size` bytes more are acknowledged, everything before `acked`; `next` is the next byte to send.
  void on_ack(std::uint64_t acked, std::uint64_t next, Bytes size, bool is_marked) {
    bytes_ += size.count();
    if (is_marked && marked_ == 0) {
      cut(1.0 - alpha_ / 2.0);
    } else if (window_ < threshold_ && !is_marked && !has_lost_) {
      set_window(window_ + static_cast<double>(size.count()));
    }
    marked_ += is_marked ? size.count() : 0;
    if (acked <= window_end_) {
      return;
    }
    const double share =
        bytes_ > 0 ? static_cast<double>(marked_) / static_cast<double>(bytes_) : 0.0;
    alpha_ = (1.0 - settings_->g) * alpha_ + settings_->g * share;
    if (marked_ == 0 && !has_lost_ && window_ >= threshold_) {
      set_window(window_ + static_cast<double>(settings_->packet.count()));
    }
    bytes_ = 0;
    marked_ = 0;
    has_lost_ = false;
    window_end_ = next;
  }

  // As TCP does (RFC 8257, section 3.5; RFC 5681): half the window, once a window, if a packet is
  // missing, and a single packet after a timeout.
  void on_loss() {
    if (!has_lost_) {
      has_lost_ = true;
      cut(0.5);
    }
  }
  void on_timeout() {
    if (settings_->slow_start && window_ > static_cast<double>(settings_->packet.count())) {
      threshold_ = window_ / 2.0;
    }
    set_window(0.0);
  }

  [[nodiscard]] Bytes window() const { return Bytes(static_cast<std::int64_t>(window_)); }
  [[nodiscard]] double alpha() const { return alpha_; }

 private:
  void cut(double share) {
    set_window(window_ * share);
    threshold_ = 0.0;
  }
  void set_window(double window) {
    window_ = std::clamp(window, static_cast<double>(settings_->packet.count()),
                         static_cast<double>(settings_->first_window.count()));
  }

  const DctcpSettings* settings_;
  double window_;
  double alpha_;
  double threshold_ = 0.0;  // Slow start goes up to it.
  std::uint64_t window_end_ = 0;
  std::int64_t bytes_ = 0;  // The bytes acknowledged in this window.
  std::int64_t marked_ = 0;
  bool has_lost_ = false;
};

struct DctcpProfile {
  DctcpSettings settings{};
};

struct DctcpControl : ControlDefaults {
  using Profile = DctcpProfile;
  using Settings = DctcpSettings;
  using Sender = Dctcp;
  static constexpr std::string_view kName = "dctcp";

  static void fields(Fields& fields, DctcpProfile& profile);
  static DctcpSettings settings(const DctcpProfile& profile, const PortTerms& port);
  static ControlTraits traits(const DctcpProfile& /*profile*/) {
    return {.packets_per_ack = 1,
            .needs_ack_times = false,
            .marks = MarkSignal::Echoes,
            .marking = "dctcp"};
  }

  static void on_ack(Dctcp& flow, const AckSignal& ack, const PortTerms& /*port*/) {
    flow.on_ack(ack.acked, ack.next, ack.size, ack.is_marked);
  }
  static void on_loss(Dctcp& flow, SimTime /*now*/) { flow.on_loss(); }
  static void on_timeout(Dctcp& flow, SimTime /*now*/) { flow.on_timeout(); }
  static Bytes window(const Dctcp& flow, const PortTerms& /*port*/) { return flow.window(); }
};

}  // namespace trainyard
