// SPDX-License-Identifier: Apache-2.0
// TIMELY (Mittal et al., SIGCOMM 2015, algorithm 1): a rate that follows the gradient of the RTT,
// once for each completed segment of 16 to 64 KB.
//
//   d = (1 - a) d + a (rtt - previous rtt),   g = d / least rtt
//   rtt < low:   R += delta
//   rtt > high:  R *= 1 - beta (1 - high / rtt)
//   g <= 0:      R += N delta, N = 5 from the fifth in a row on, otherwise 1
//   g > 0:       R *= 1 - beta g
//
// It has no unique fixed point: flows that start unequal may stay so (Zhu et al., CoNEXT 2016). The
// rate is a real number, as in the paper.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "hw/control/control_terms.h"
#include "sim/check.h"
#include "sim/units.h"

namespace trainyard {

struct TimelySettings {
  Bandwidth line{};
  Bandwidth min{};
  Bandwidth additive{};   // delta
  double weight = 0.875;  // a
  double beta = 0.8;
  SimTime low = microseconds(50);
  SimTime high = microseconds(500);
  SimTime min_rtt = microseconds(20);
  int hyper_after = 5;       // Completions with a falling RTT in a row.
  double hyper_steps = 5.0;  // N from then on.
  Bytes segment{16'384};     // Acknowledged bytes that make a completion.
};

// `settings` must outlive it.
class Timely {
 public:
  explicit Timely(const TimelySettings& settings)
      : settings_(&settings), rate_(static_cast<double>(settings.line.bits_per_second())) {
    CHECK(settings.line > Bandwidth(0) && settings.min_rtt > SimTime(), "no rate or no RTT");
  }

  // `size` bytes more are acknowledged, the last of them `rtt` after they were sent.
  void on_ack(Bytes size, SimTime rtt) {
    acked_ += size.count();
    if (acked_ >= settings_->segment.count()) {
      acked_ = 0;
      on_completion(rtt);
    }
  }
  // A segment has been acknowledged as a whole.
  void on_completion(SimTime rtt) {
    if (previous_ == SimTime()) {
      previous_ = rtt;  // A gradient needs two.
      return;
    }
    const double change = static_cast<double>((rtt - previous_).picoseconds());
    previous_ = rtt;
    difference_ = (1.0 - settings_->weight) * difference_ + settings_->weight * change;
    update(rtt, difference_ / static_cast<double>(settings_->min_rtt.picoseconds()));
  }

  [[nodiscard]] Bandwidth rate() const { return Bandwidth(std::llround(rate_)); }

 private:
  void update(SimTime rtt, double gradient) {
    const auto delta = static_cast<double>(settings_->additive.bits_per_second());
    const bool is_between = rtt >= settings_->low && rtt <= settings_->high;
    falling_ = is_between && gradient <= 0.0 ? falling_ + 1 : 0;
    if (rtt < settings_->low) {
      rate_ += delta;
    } else if (rtt > settings_->high) {
      rate_ *= 1.0 - settings_->beta * (1.0 - settings_->high / rtt);
    } else if (gradient <= 0.0) {
      rate_ += falling_ >= settings_->hyper_after ? settings_->hyper_steps * delta : delta;
    } else {
      rate_ *= 1.0 - settings_->beta * gradient;
    }
    rate_ = std::clamp(rate_, static_cast<double>(settings_->min.bits_per_second()),
                       static_cast<double>(settings_->line.bits_per_second()));
  }

  const TimelySettings* settings_;
  double rate_;
  double difference_ = 0.0;  // d, in picoseconds.
  SimTime previous_{};
  int falling_ = 0;
  std::int64_t acked_ = 0;  // Since the last completion.
};

struct TimelyProfile {
  TimelySettings settings{};
  RateRule additive{};
  RateRule min{};
};

struct TimelyControl : ControlDefaults {
  using Profile = TimelyProfile;
  using Settings = TimelySettings;
  using Sender = Timely;
  static constexpr std::string_view kName = "timely";

  static void fields(Fields& fields, TimelyProfile& profile);
  static TimelySettings settings(const TimelyProfile& profile, const PortTerms& port);
  static ControlTraits traits(const TimelyProfile& profile) {
    return {.bytes_per_ack = profile.settings.segment};
  }

  static void on_ack(Timely& flow, const AckSignal& ack, const PortTerms& /*port*/) {
    flow.on_ack(ack.size, ack.rtt);
  }
  static Bandwidth rate(const Timely& flow, SimTime /*now*/, const PortTerms& /*port*/) {
    return flow.rate();
  }
};

}  // namespace trainyard
