// SPDX-License-Identifier: Apache-2.0
#include "hw/control/dcqcn.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "hw/control/control_reader.h"
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

void read_increase(const ControlReader& reader, DcqcnSettings& settings) {
  settings.rate_timer = reader.some_time("rate_timer");
  const ConfigNode counter = reader.node("byte_counter");
  settings.byte_counter = is_off(counter) ? Bytes(0) : reader.some_bytes("byte_counter");
  settings.threshold = reader.count("threshold", 1, ControlReader::kMany);
  constexpr std::array<std::string_view, 2> kRecoveries{"below", "up-to"};
  settings.fast_recovery = static_cast<FastRecovery>(reader.choice("fast_recovery", kRecoveries));
  settings.counts_first = reader.flag("counts_first");
  settings.hyper_grows = reader.flag("hyper_grows");
  settings.cap_target = reader.flag("cap_target");
}

}  // namespace

DcqcnReaction::DcqcnReaction(const DcqcnSettings& settings)
    : DcqcnReaction(settings, real(settings.line)) {}

DcqcnReaction::DcqcnReaction(const DcqcnSettings& settings, double rate)
    : settings_(&settings), rate_(rate), target_(rate), alpha_(settings.initial_alpha) {
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
  const double share = std::max(1.0 - alpha * settings_->alpha_weight, settings_->least_share);
  rate_ = std::max(real(settings_->least), rate_ * share);
  timer_count_ = 0;
  byte_count_ = 0;
  bytes_ = 0;
  timer_at_ = now + settings_->rate_timer;
  is_settled_ = false;
}

void DcqcnReaction::increase() {
  const bool by_bytes = settings_->byte_counter > Bytes(0);
  const std::int64_t most = by_bytes ? std::max(timer_count_, byte_count_) : timer_count_;
  const std::int64_t least = by_bytes ? std::min(timer_count_, byte_count_) : timer_count_;
  const std::int64_t threshold = settings_->threshold;
  const bool is_recovery =
      settings_->fast_recovery == FastRecovery::Below ? most < threshold : most <= threshold;
  if (!is_recovery && least > threshold) {
    const double steps = settings_->hyper_grows ? static_cast<double>(least - threshold) : 1.0;
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

DcqcnProfile DcqcnControl::read(const ControlReader& reader) {
  DcqcnProfile profile;
  DcqcnSettings& settings = profile.settings;
  constexpr std::array<std::string_view, 2> kTimings{"on-cnp", "periodic"};
  settings.timing = static_cast<CutTiming>(reader.choice("timing", kTimings));
  settings.g = reader.share("g");
  settings.initial_alpha = reader.share("initial_alpha");
  settings.alpha_interval = reader.some_time("alpha_interval");
  settings.alpha_weight = reader.share("alpha_weight");
  settings.least_share = reader.share("least_share");
  if (settings.timing == CutTiming::Periodic) {
    settings.cut_interval = reader.some_time("cut_interval");
    const ConfigNode first = reader.node("first_rate");
    settings.first_rate = is_off(first) ? Bandwidth(0) : first.as_bandwidth();
  }
  read_increase(reader, settings);
  settings.clamp_target = reader.flag("clamp_target");
  settings.clamp_after_timer = reader.flag("clamp_after_timer");
  profile.least = reader.rate("least_rate");
  profile.additive = reader.rate("additive_increase");
  profile.hyper = reader.rate("hyper_increase");
  constexpr std::array<std::string_view, 2> kWindows{"off", "bdp"};
  profile.has_window = reader.choice("window", kWindows) == 1;
  constexpr std::array<std::string_view, 2> kCnpRules{"immediate", "deferred"};
  profile.cnp_rule = static_cast<CnpRule>(reader.choice("cnp_rule", kCnpRules));
  profile.cnp_interval = reader.time("cnp_interval");
  return profile;
}

DcqcnSettings DcqcnControl::settings(const DcqcnProfile& profile, const PortTerms& port) {
  DcqcnSettings settings = profile.settings;
  settings.line = port.line;
  settings.least = std::min(profile.least.at(port.line), port.line);
  settings.additive = profile.additive.at(port.line);
  settings.hyper = profile.hyper.at(port.line);
  settings.window = profile.has_window ? bdp(port) : Bytes(0);
  return settings;
}

}  // namespace trainyard
