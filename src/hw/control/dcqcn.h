// SPDX-License-Identifier: Apache-2.0
// DCQCN (Zhu et al., SIGCOMM 2015): the receiver answers marked packets with CNPs (notification
// point), the sender cuts its rate for them and recovers by a timer and a byte counter (reaction
// point). docs/models/transport.md has the equations of both profiles and where they differ.
//
// Rates and alpha are real numbers, as in the paper; times and sizes are integers. No ticks are
// kept: everything that has expired is caught up with when somebody asks. How often that happens
// does not change a bit of the result, because alpha is kept as its last raised value and the time
// of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "hw/control/control_terms.h"
#include "sim/units.h"

namespace trainyard {

// When a CNP cuts the rate and raises alpha.
enum class CutTiming : std::uint8_t {
  OnCnp,     // At once (the paper). Alpha falls for each alpha_interval since the last CNP.
  Periodic,  // At the next tick of each kind (NICs): CNPs of one interval count once.
};

// Which counts are still fast recovery, of a threshold F.
enum class FastRecovery : std::uint8_t { Below, UpTo };

struct DcqcnSettings {
  Bandwidth line{};      // The rate of the port: where flows start, and the cap of the target.
  Bandwidth min{};       // No cut goes below.
  Bandwidth additive{};  // R_AI
  Bandwidth hyper{};     // R_HAI
  double g = 1.0 / 256;
  double initial_alpha = 1.0;
  CutTiming timing = CutTiming::OnCnp;
  SimTime alpha_interval = microseconds(55);
  SimTime cut_interval = microseconds(4);  // Periodic: from one look at the flag to the next.
  SimTime cut_offset = nanoseconds(1);     // Periodic: cut ticks follow alpha ticks by this.
  SimTime rate_timer = microseconds(55);
  Bytes byte_counter{10'000'000};  // 0: no byte counter; the timer alone says the phase.
  int threshold = 5;               // F
  FastRecovery fast_recovery = FastRecovery::Below;
  bool counts_first = true;       // An expiry counts before the phase is looked up.
  bool hyper_grows = true;        // The i-th hyper increase adds i R_HAI instead of R_HAI.
  bool clamp_target = true;       // Every cut sets the target to the rate before it.
  bool clamp_after_timer = true;  // So does a cut after an increase by the timer.
  bool cap_target = true;         // The target stays within the line rate.
  double alpha_weight = 0.5;      // A cut takes this share of alpha.
  double min_share = 0.0;         // What one cut leaves of the rate at least.
  Bandwidth first_rate{};         // Periodic: the rate that the first CNP sets; 0: no change.
  // The bytes that may be in flight at the line rate, as some simulators have it; the window falls
  // with the rate. 0: no window.
  Bytes window{};
};

// The reaction point of one queue pair. `settings` must outlive it.
class DcqcnReaction {
 public:
  enum class Event : std::uint8_t { None, Cut, Timer, Bytes };

  // Starts at the line rate, or at `rate` bits per second, without a limiter until the first CNP.
  explicit DcqcnReaction(const DcqcnSettings& settings, std::optional<double> rate = {});

  // A CNP has come. What expires at the same instant comes after it.
  void on_cnp(SimTime now);
  // `size` bytes have been sent. What expires at the same instant comes before it.
  void on_sent(SimTime now, Bytes size);
  // Catches up with everything that expires until `now`, inclusively.
  void advance(SimTime now) {
    while (deadline() <= now && step(now) != Event::None) {
    }
  }
  // The next single expiry not after `until`, or None. For traces and tests.
  Event step(SimTime until);
  // When the rate may change next if nothing comes in; SimTime::max() if it will not.
  [[nodiscard]] SimTime deadline() const {
    return cut_at_ < timer_at_ || is_settled_ ? cut_at_ : timer_at_;
  }

  // As of the last advance, in bits per second.
  [[nodiscard]] Bandwidth rate() const {
    const double nearest = rate_ + 0.5;  // Never negative: cheaper than llround, for each packet.
    return Bandwidth(static_cast<std::int64_t>(nearest));
  }
  [[nodiscard]] Bytes window() const;
  [[nodiscard]] double current() const { return rate_; }   // RC
  [[nodiscard]] double target() const { return target_; }  // RT
  // With what has fallen until `now`, which is not before the last input.
  [[nodiscard]] double alpha(SimTime now) const;
  // Expiries since the last cut; at the line rate, where they change nothing, they are not counted.
  [[nodiscard]] std::int64_t timer_count() const { return timer_count_; }  // T
  [[nodiscard]] std::int64_t byte_count() const { return byte_count_; }    // BC

 private:
  void cut(double alpha, SimTime now);
  void count_and_increase(std::int64_t& count);
  void increase();
  // The first tick of a series from start_ + offset, without the one at its start, not before
  // `now`.
  [[nodiscard]] SimTime next_tick(SimTime now, SimTime interval, SimTime offset) const;
  // alpha_ after `ticks` ticks without a CNP.
  [[nodiscard]] double fallen(std::int64_t ticks) const;
  void raise_alpha(SimTime at);

  const DcqcnSettings* settings_;
  double rate_;
  double target_;
  double alpha_;
  SimTime alpha_since_{};              // When alpha_ had its value; ticks count from here.
  SimTime start_{};                    // Of the ticks: the first CNP.
  SimTime alpha_at_ = SimTime::max();  // Periodic: the tick that raises alpha, if one is due.
  SimTime cut_at_ = SimTime::max();    // Periodic: the tick that cuts, if one is due.
  SimTime timer_at_ = SimTime::max();
  std::int64_t bytes_ = 0;  // Since the byte counter last expired.
  std::int64_t timer_count_ = 0;
  std::int64_t byte_count_ = 0;
  bool is_active_ = false;   // A CNP has come.
  bool is_settled_ = false;  // At the line rate: increases change nothing.
};

// The notification point of one flow (or address, or port, as far as the NIC moderates them
// together).
class DcqcnNotification {
 public:
  // A marked packet has come. Whether to send a CNP now, by CnpRule::Immediate.
  bool on_marked(SimTime interval, SimTime now) {
    if (now < quiet_until_) {
      return false;
    }
    quiet_until_ = now + interval;
    return true;
  }

 private:
  SimTime quiet_until_{};
};

struct DcqcnProfile {
  DcqcnSettings settings{};  // Without what depends on the port.
  RateRule min{};
  RateRule additive{};
  RateRule hyper{};
  bool has_window = false;  // Line rate x base RTT, narrowing with the rate.
  CnpRule cnp_rule = CnpRule::Immediate;
  SimTime cnp_interval{};
};

struct DcqcnControl : ControlDefaults {
  using Profile = DcqcnProfile;
  using Settings = DcqcnSettings;
  using Sender = DcqcnReaction;
  static constexpr std::string_view kName = "dcqcn";

  static void fields(Fields& fields, DcqcnProfile& profile);
  static DcqcnSettings settings(const DcqcnProfile& profile, const PortTerms& port);
  static ControlTraits traits(const DcqcnProfile& profile) {
    return {.packets_per_ack = profile.has_window ? 1 : 0,
            .marks = MarkSignal::Cnps,
            .cnp_rule = profile.cnp_rule,
            .cnp_interval = profile.cnp_interval};
  }

  static void on_cnp(DcqcnReaction& flow, SimTime now) { flow.on_cnp(now); }
  static void on_sent(DcqcnReaction& flow, SimTime now, Bytes size) { flow.on_sent(now, size); }
  static Bandwidth rate(DcqcnReaction& flow, SimTime now, const PortTerms& /*port*/) {
    flow.advance(now);
    return flow.rate();
  }
  static Bytes window(const DcqcnReaction& flow, const PortTerms& /*port*/) {
    return flow.window();
  }
};

}  // namespace trainyard
