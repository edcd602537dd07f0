// SPDX-License-Identifier: Apache-2.0
#include "hw/control/dcqcn.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "hw/control/control_fields.h"
#include "sim/check.h"

namespace trainyard {
namespace {

double real(Bandwidth rate) {
  return static_cast<double>(rate.bits_per_second());
}

// Works by squaring: the same bits everywhere, which the library's pow does not promise.
double power(double base, std::int64_t exponent) {
  double result = 1.0;
  for (; exponent > 0 && result > 0.0; exponent >>= 1) {
    if ((exponent & 1) != 0) {
      result *= base;
    }
    base *= base;
  }
  return result;
}

// Whole intervals in a time that is not negative.
std::int64_t whole(SimTime time, SimTime interval) {
  return time.picoseconds() / interval.picoseconds();
}

constexpr std::array<std::string_view, 2> kRecoveries{"below", "up-to"};
constexpr std::array<std::string_view, 2> kTimings{"on-cnp", "periodic"};
constexpr std::array<std::string_view, 2> kWindows{"off", "bdp"};
constexpr std::array<std::string_view, 2> kCnpRules{"immediate", "deferred"};

void cut_fields(Fields& fields, DcqcnSettings& settings) {
  fields.required("timing", settings.timing, Cited{Choice{kTimings}},
                  "Whether a CNP cuts the rate, or a tick after it.");
  fields.required("g", settings.g, control::kShare, "The gain of alpha.");
  fields.required("initial_alpha", settings.initial_alpha, control::kShare,
                  "Alpha at the first CNP.");
  fields.required("alpha_interval", settings.alpha_interval, control::kSomeTime,
                  "Time without a CNP after which alpha falls, or between ticks.");
  fields.required("alpha_weight", settings.alpha_weight, control::kShare,
                  "A cut takes this share of alpha.");
  fields.required("least_share", settings.min_share, control::kShare,
                  "What one cut leaves of the rate at least.");
  fields.where(settings.timing == CutTiming::Periodic, [&] {
    fields.required("cut_interval", settings.cut_interval, control::kSomeTime,
                    "Periodic: time between two looks for a CNP.");
    fields.required("first_rate", settings.first_rate, Cited{OrOff{Rate{}}},
                    "Periodic: the rate that the first CNP sets.");
  });
}

void increase_fields(Fields& fields, DcqcnSettings& settings) {
  fields.required("rate_timer", settings.rate_timer, control::kSomeTime, "Time between increases.");
  fields.required("byte_counter", settings.byte_counter, Cited{OrOff{SomeAmount{}}},
                  "Bytes sent between increases.");
  fields.required("threshold", settings.threshold, control::kCount,
                  "F, the increases of fast recovery.");
  fields.required("fast_recovery", settings.fast_recovery, Cited{Choice{kRecoveries}},
                  "Whether increase F is one of fast recovery.");
  fields.required("counts_first", settings.counts_first, control::kFlag,
                  "Whether an expiry counts before the phase is looked up.");
  fields.required("hyper_grows", settings.hyper_grows, control::kFlag,
                  "Whether hyper increases grow from one to the next.");
  fields.required("cap_target", settings.cap_target, control::kFlag,
                  "Whether the target stays within the line rate.");
}

}  // namespace

DcqcnReaction::DcqcnReaction(const DcqcnSettings& settings, std::optional<double> rate)
    : settings_(&settings),
      rate_(rate.value_or(real(settings.line))),
      target_(rate_),
      alpha_(settings.initial_alpha) {
  CHECK(settings.line > Bandwidth(0), "a port without a rate");
  CHECK(settings.alpha_interval > SimTime() && settings.rate_timer > SimTime(),
        "timers of no time");
  CHECK(settings.timing == CutTiming::OnCnp || settings.cut_interval > SimTime(),
        "timers of no time");
}

double DcqcnReaction::fallen(std::int64_t ticks) const {
  return alpha_ * power(1.0 - settings_->g, ticks);
}

double DcqcnReaction::alpha(SimTime now) const {
  if (!is_active_) {
    return alpha_;
  }
  if (alpha_at_ <= now) {  // Raised by its tick, and fallen since.
    const double before = fallen(whole(alpha_at_ - alpha_since_, settings_->alpha_interval) - 1);
    const double raised = (1.0 - settings_->g) * before + settings_->g;
    return raised * power(1.0 - settings_->g, whole(now - alpha_at_, settings_->alpha_interval));
  }
  return fallen(whole(now - alpha_since_, settings_->alpha_interval));
}

SimTime DcqcnReaction::next_tick(SimTime now, SimTime interval, SimTime offset) const {
  const SimTime first = start_ + offset;
  if (now <= first) {
    return first + interval;
  }
  const std::int64_t ticks =
      whole(now - first + interval - picoseconds(1), interval);  // Rounded up.
  return first + interval * ticks;
}

void DcqcnReaction::raise_alpha(SimTime at) {
  alpha_ = alpha(at);
  alpha_since_ = at;
  alpha_at_ = SimTime::max();
}

void DcqcnReaction::on_cnp(SimTime now) {
  if (now > SimTime()) {
    advance(now - picoseconds(1));
  }
  if (settings_->timing == CutTiming::OnCnp) {
    // An alpha timer that expires at this very instant comes too late.
    const bool has_past = is_active_ && now > alpha_since_;
    const double before = has_past ? alpha(now - picoseconds(1)) : alpha_;
    is_active_ = true;
    cut(before, now);
    alpha_ = (1.0 - settings_->g) * before + settings_->g;
    alpha_since_ = now;
    return;
  }
  if (alpha_at_ < now) {
    raise_alpha(alpha_at_);
  }
  if (!is_active_) {
    is_active_ = true;
    start_ = now;
    alpha_since_ = now;
    if (settings_->first_rate > Bandwidth(0)) {
      rate_ = std::min(rate_, real(settings_->first_rate));
    }
    target_ = rate_;
  } else {
    alpha_at_ = std::min(alpha_at_, next_tick(now, settings_->alpha_interval, SimTime()));
  }
  cut_at_ = std::min(cut_at_, next_tick(now, settings_->cut_interval, settings_->cut_offset));
}

void DcqcnReaction::cut(double alpha, SimTime now) {
  const bool has_increased = byte_count_ > 0 || (timer_count_ > 0 && settings_->clamp_after_timer);
  if (settings_->clamp_target || has_increased) {
    target_ = rate_;
  }
  const double share = std::max(1.0 - alpha * settings_->alpha_weight, settings_->min_share);
  rate_ = std::max(real(settings_->min), rate_ * share);
  timer_count_ = 0;
  byte_count_ = 0;
  bytes_ = 0;
  timer_at_ = now + settings_->rate_timer;
  is_settled_ = false;
}

void DcqcnReaction::increase() {
  const bool by_bytes = settings_->byte_counter > Bytes(0);
  const std::int64_t max = by_bytes ? std::max(timer_count_, byte_count_) : timer_count_;
  const std::int64_t min = by_bytes ? std::min(timer_count_, byte_count_) : timer_count_;
  const std::int64_t threshold = settings_->threshold;
  const bool is_recovery =
      settings_->fast_recovery == FastRecovery::Below ? max < threshold : max <= threshold;
  if (!is_recovery && min > threshold) {
    const double steps = settings_->hyper_grows ? static_cast<double>(min - threshold) : 1.0;
    target_ += steps * real(settings_->hyper);
  } else if (!is_recovery) {
    target_ += real(settings_->additive);
  }
  const double line = real(settings_->line);
  if (settings_->cap_target) {
    target_ = std::min(target_, line);
  }
  const double before = rate_;
  rate_ = std::min((target_ + rate_) / 2.0, line);
  is_settled_ = settings_->cap_target && target_ >= line && rate_ <= before;
}

void DcqcnReaction::count_and_increase(std::int64_t& count) {
  if (settings_->counts_first) {
    ++count;
    increase();
  } else {
    increase();
    ++count;
  }
}

DcqcnReaction::Event DcqcnReaction::step(SimTime until) {
  if (deadline() > until || deadline() == SimTime::max()) {
    return Event::None;
  }
  if (cut_at_ <= timer_at_ || is_settled_) {
    const SimTime at = cut_at_;
    cut_at_ = SimTime::max();
    if (alpha_at_ <= at) {
      raise_alpha(alpha_at_);
    }
    cut(alpha(at), at);
    return Event::Cut;
  }
  timer_at_ = timer_at_ + settings_->rate_timer;
  count_and_increase(timer_count_);
  return Event::Timer;
}

void DcqcnReaction::on_sent(SimTime now, Bytes size) {
  if (!is_active_ || settings_->byte_counter == Bytes(0)) {
    return;
  }
  advance(now);
  bytes_ += size.count();
  while (bytes_ >= settings_->byte_counter.count()) {
    bytes_ -= settings_->byte_counter.count();
    count_and_increase(byte_count_);
  }
}

Bytes DcqcnReaction::window() const {
  if (settings_->window == Bytes(0)) {
    return kUnlimitedWindow;
  }
  const auto full = static_cast<double>(settings_->window.count());
  return Bytes(static_cast<std::int64_t>(full * (rate_ / real(settings_->line))));
}

void DcqcnControl::fields(Fields& fields, DcqcnProfile& profile) {
  DcqcnSettings& settings = profile.settings;
  cut_fields(fields, settings);
  increase_fields(fields, settings);
  fields.required("clamp_target", settings.clamp_target, control::kFlag,
                  "Whether every cut sets the target to the rate before it.");
  fields.required("clamp_after_timer", settings.clamp_after_timer, control::kFlag,
                  "Whether a cut after an increase by the timer does.");
  fields.required("least_rate", profile.min, control::PerRate{}, "No cut goes below.");
  fields.required("additive_increase", profile.additive, control::PerRate{},
                  "R_AI, an additive increase.");
  fields.required("hyper_increase", profile.hyper, control::PerRate{}, "R_HAI, a hyper increase.");
  fields.required("window", profile.has_window, Cited{Choice{kWindows}},
                  "Bytes in flight: no limit, or line rate x base RTT, narrowing with the rate.");
  fields.required("cnp_rule", profile.cnp_rule, Cited{Choice{kCnpRules}},
                  "Whether a receiver sends a CNP at once or when its interval ends.");
  fields.required("cnp_interval", profile.cnp_interval, control::kTime,
                  "The least time between two CNPs of a flow.");
}

DcqcnSettings DcqcnControl::settings(const DcqcnProfile& profile, const PortTerms& port) {
  DcqcnSettings settings = profile.settings;
  settings.line = port.line;
  settings.min = std::min(profile.min.at(port.line), port.line);
  settings.additive = profile.additive.at(port.line);
  settings.hyper = profile.hyper.at(port.line);
  settings.window = profile.has_window ? bdp(port) : Bytes(0);
  return settings;
}

}  // namespace trainyard
