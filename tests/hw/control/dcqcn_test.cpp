// SPDX-License-Identifier: Apache-2.0
// Both profiles event by event against the golden traces, and what must hold for any inputs: above
// all that it does not matter how often somebody looks.
#include "support/catch.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "hw/control/dcqcn.h"
#include "sim/random.h"
#include "support/transport_goldens.h"

namespace trainyard {
namespace {

using namespace literals;
using Event = DcqcnReaction::Event;

DcqcnSettings settings_of(const GoldenParams& params, bool is_paper) {
  DcqcnSettings settings;
  settings.line = Bandwidth(params.integer("line_bps"));
  settings.min = Bandwidth(params.integer("min_rate_bps"));
  settings.additive = Bandwidth(params.integer("R_AI_bps"));
  settings.hyper = Bandwidth(params.integer("R_HAI_bps"));
  settings.g = params.number("g");
  settings.rate_timer = microseconds(params.integer("rate_timer_us"));
  settings.threshold = static_cast<int>(params.integer("F"));
  if (is_paper) {
    settings.initial_alpha = params.number("alpha_initial");
    settings.alpha_interval = microseconds(params.integer("alpha_timer_us"));
    settings.byte_counter = Bytes(params.integer("byte_counter_bytes"));
    return settings;
  }
  settings.timing = CutTiming::Periodic;
  settings.alpha_interval = microseconds(params.integer("alpha_tick_us"));
  settings.cut_interval = microseconds(params.integer("decrease_tick_us"));
  settings.byte_counter = Bytes(0);
  settings.counts_first = false;
  settings.hyper_grows = false;
  settings.clamp_target = params.text("clamp_target") == "true";
  return settings;
}

double initial_rate(const GoldenParams& params) {
  return params.number(params.has("initial_RC_bps") ? "initial_RC_bps" : "line_bps");
}

// Sends without end: bytes are the integral of the rate.
class Backlogged {
 public:
  explicit Backlogged(Bytes counter) : counter_(static_cast<double>(counter.count())) {}

  void integrate(SimTime now, double rate) {
    bytes_ += rate * (now - since_).seconds() / 8.0;
    since_ = now;
  }
  void restart(SimTime now) {
    bytes_ = 0.0;
    since_ = now;
  }

  // The byte counter has expired at `now`: how far off the bytes sent are from it.
  double expire(SimTime now, double rate) {
    integrate(now, rate);
    const double error = bytes_ - counter_;
    bytes_ = 0.0;
    return error;
  }

 private:
  double counter_;
  double bytes_ = 0.0;
  SimTime since_{};
};

void require_near_kilobits(double rate, std::int64_t golden) {
  REQUIRE(std::abs(rate / 1e3 - static_cast<double>(golden)) <= 1.0);
}

// Brings `reaction` to the row and returns what happened there.
Event follow(DcqcnReaction& reaction, Backlogged& source, const DcqcnSettings& settings,
             const std::string& event, SimTime now) {
  if (event == "ALPHA") {  // Falls without an event.
    source.integrate(now, reaction.current());
    return Event::None;
  }
  if (event == "CNP") {
    reaction.on_cnp(now);
    source.restart(now);
    return Event::None;
  }
  if (event == "BYTES") {
    const double error = source.expire(now, reaction.current());
    REQUIRE(std::abs(error) < 0.5);
    reaction.on_sent(now, settings.byte_counter);
    return Event::Bytes;
  }
  source.integrate(now, reaction.current());
  REQUIRE(reaction.deadline() == now);
  return reaction.step(now);
}

Event event_named(const std::string& name) {
  if (name == "TIMER") {
    return Event::Timer;
  }
  if (name == "DEC") {
    return Event::Cut;
  }
  return name == "BYTES" ? Event::Bytes : Event::None;
}

void require_golden_sequence(const ConfigNode& sequence) {
  const bool is_paper = sequence.required("profile").as_string() == "paper";
  const GoldenParams params(sequence);
  const DcqcnSettings settings = settings_of(params, is_paper);
  DcqcnReaction reaction(settings, initial_rate(params));
  Backlogged source(settings.byte_counter);
  std::vector<double> arrivals = golden_numbers(sequence, "cnp_arrivals_us");
  const GoldenTable table(sequence);
  std::size_t arrival = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    INFO(sequence.required("id").as_string() << " row " << row);
    const SimTime now(table.integer(row, "t_ps"));
    const std::string& event = table.text(row, "event");
    // The NIC's rows hold only its first CNP; those in between set flags.
    while (!is_paper && arrival < arrivals.size() &&
           arrivals[arrival] * 1e6 < static_cast<double>(now.picoseconds())) {
      reaction.on_cnp(microseconds(std::llround(arrivals[arrival++])));
    }
    arrival += event == "CNP" ? 1 : 0;
    REQUIRE(follow(reaction, source, settings, event, now) == event_named(event));
    require_near_kilobits(reaction.current(), table.integer(row, "RC_kbps"));
    require_near_kilobits(reaction.target(), table.integer(row, "RT_kbps"));
    REQUIRE(std::abs(reaction.alpha(now) - table.number(row, "alpha")) <= 1e-8);
    REQUIRE(reaction.timer_count() == table.integer(row, is_paper ? "T" : "stage_after"));
    REQUIRE((!is_paper || reaction.byte_count() == table.integer(row, "BC")));
  }
  REQUIRE(arrival == arrivals.size());
}

// As the tables of settings have them.
DcqcnSettings nic_like() {
  DcqcnSettings settings;
  settings.line = gigabits_per_second(100);
  settings.min = gigabits_per_second(1);
  settings.additive = Bandwidth(20'000'000);
  settings.hyper = Bandwidth(200'000'000);
  settings.timing = CutTiming::Periodic;
  settings.alpha_interval = 1_us;
  settings.rate_timer = 300_us;
  settings.byte_counter = Bytes(0);
  settings.threshold = 1;
  settings.counts_first = false;
  settings.hyper_grows = false;
  settings.clamp_target = false;
  return settings;
}

DcqcnSettings paper_like() {
  DcqcnSettings settings;
  settings.line = gigabits_per_second(40);
  settings.additive = Bandwidth(40'000'000);
  settings.hyper = Bandwidth(200'000'000);
  return settings;
}

// The same rules tick by tick, with nothing clever about them.
class PlainReaction {
 public:
  explicit PlainReaction(const DcqcnSettings& settings)
      : settings_(settings),
        line_(static_cast<double>(settings.line.bits_per_second())),
        rate_(line_),
        target_(line_),
        alpha_(settings.initial_alpha) {}

  void on_cnp(SimTime now) {
    run_before(now);
    if (settings_.timing == CutTiming::OnCnp) {
      cut(now);
      alpha_ = (1.0 - settings_.g) * alpha_ + settings_.g;
      alpha_tick_ = now + settings_.alpha_interval;
    } else if (!is_active_) {
      alpha_tick_ = now + settings_.alpha_interval;
      cut_tick_ = now + settings_.cut_offset + settings_.cut_interval;
      target_ = rate_;
    } else {
      raises_ = true;
    }
    cuts_ = true;
    is_active_ = true;
  }
  // All that is due before `now`.
  void run_before(SimTime now) {
    while (std::min({alpha_tick_, cut_tick_, timer_}) < now) {
      if (alpha_tick_ <= std::min(cut_tick_, timer_)) {
        alpha_ = (1.0 - settings_.g) * alpha_ + (raises_ ? settings_.g : 0.0);
        raises_ = false;
        alpha_tick_ += settings_.alpha_interval;
      } else if (cut_tick_ <= timer_) {
        if (cuts_) {
          cut(cut_tick_);
        }
        cuts_ = false;
        cut_tick_ += settings_.cut_interval;
      } else {
        increase();
      }
    }
  }
  [[nodiscard]] double rate() const { return rate_; }
  [[nodiscard]] double target() const { return target_; }
  [[nodiscard]] double alpha() const { return alpha_; }

 private:
  void cut(SimTime now) {
    if (settings_.clamp_target || timers_ > 0) {
      target_ = rate_;
    }
    rate_ = std::max(static_cast<double>(settings_.min.bits_per_second()),
                     rate_ * (1.0 - alpha_ / 2.0));
    timers_ = 0;
    timer_ = now + settings_.rate_timer;
  }
  void increase() {
    timer_ += settings_.rate_timer;
    timers_ += settings_.counts_first ? 1 : 0;
    if (timers_ > settings_.threshold) {
      const double steps = settings_.hyper_grows ? timers_ - settings_.threshold : 1;
      target_ += steps * static_cast<double>(settings_.hyper.bits_per_second());
    } else if (timers_ == settings_.threshold) {
      target_ += static_cast<double>(settings_.additive.bits_per_second());
    }
    target_ = std::min(target_, line_);
    rate_ = (rate_ + target_) / 2.0;
    timers_ += settings_.counts_first ? 0 : 1;
  }

  DcqcnSettings settings_;
  double line_;
  double rate_;
  double target_;
  double alpha_;
  SimTime alpha_tick_ = SimTime::max();
  SimTime cut_tick_ = SimTime::max();
  SimTime timer_ = SimTime::max();
  int timers_ = 0;
  bool is_active_ = false;
  bool raises_ = false;
  bool cuts_ = false;
};

}  // namespace

TEST_CASE("DCQCN agrees with a plain one that keeps every tick, also where they coincide",
          "[transport]") {
  for (DcqcnSettings settings : {nic_like(), paper_like()}) {
    settings.byte_counter = Bytes(0);
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      RandomStream random(seed, "ticks");
      DcqcnReaction reaction(settings);
      PlainReaction plain(settings);
      SimTime now;
      for (int i = 0; i < 100; ++i) {
        // Half of the time on a whole microsecond, so that ticks and CNPs meet.
        const auto gap = static_cast<std::int64_t>(random.below(random.below(8) == 0 ? 3000 : 60));
        const auto rest = static_cast<std::int64_t>(random.below(2) * random.below(1000));
        now += microseconds(gap) + nanoseconds(rest);
        reaction.on_cnp(now);
        plain.on_cnp(now);
        INFO("seed=" << seed << " at " << to_string(now));
        REQUIRE(reaction.current() == Approx(plain.rate()).epsilon(1e-9));
        REQUIRE(reaction.target() == Approx(plain.target()).epsilon(1e-9));
        if (settings.timing == CutTiming::OnCnp) {
          REQUIRE(reaction.alpha(now) == Approx(plain.alpha()).epsilon(1e-9));
        }
      }
    }
  }
}

TEST_CASE("both DCQCN profiles follow the golden traces", "[transport]") {
  const std::vector<ConfigNode> sequences =
      transport_goldens("dcqcn_rp").required("sequences").items();
  REQUIRE(sequences.size() == 9);
  for (const ConfigNode& sequence : sequences) {
    require_golden_sequence(sequence);
  }
}

TEST_CASE("how often DCQCN is looked at does not change a bit of it", "[transport]") {
  for (const DcqcnSettings& settings : {nic_like(), paper_like()}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      RandomStream random(seed, "cnps");
      DcqcnReaction watched(settings);
      DcqcnReaction alone(settings);
      SimTime now;
      for (int i = 0; i < 60; ++i) {
        const SimTime next = now + nanoseconds(static_cast<std::int64_t>(
                                       random.below(random.below(4) == 0 ? 2'000'000 : 5'000)));
        for (SimTime look = now; look < next; look += 700_ns) {
          watched.advance(look);
          static_cast<void>(watched.alpha(look));
        }
        now = next;
        if (random.below(3) == 0) {
          watched.on_sent(now, Bytes(3'000'000));
          alone.on_sent(now, Bytes(3'000'000));
        } else {
          watched.on_cnp(now);
          alone.on_cnp(now);
        }
        watched.advance(now);
        alone.advance(now);
        INFO("seed=" << seed);
        REQUIRE(watched.current() == alone.current());
        REQUIRE(watched.target() == alone.target());
        REQUIRE(watched.alpha(now) == alone.alpha(now));
        REQUIRE(watched.deadline() == alone.deadline());
      }
    }
  }
}

TEST_CASE("rates stay between the least and the line, whatever comes", "[transport]") {
  for (const DcqcnSettings& settings : {nic_like(), paper_like()}) {
    DcqcnReaction reaction(settings);
    RandomStream random(3, "cnps");
    SimTime now;
    for (int i = 0; i < 3000; ++i) {
      now += nanoseconds(static_cast<std::int64_t>(random.below(400'000)));
      if (random.below(2) == 0) {
        reaction.on_cnp(now);
      } else {
        reaction.on_sent(now, Bytes(1'000'000));
      }
      REQUIRE(reaction.rate() >= settings.min);
      REQUIRE(reaction.rate() <= settings.line);
      REQUIRE(reaction.target() <= static_cast<double>(settings.line.bits_per_second()));
      REQUIRE(reaction.alpha(now) <= 1.0);
    }
  }
}

TEST_CASE("a flow back at the line rate has no deadline, and a second of idling costs nothing",
          "[transport]") {
  const DcqcnSettings settings = nic_like();
  DcqcnReaction reaction(settings);
  REQUIRE(reaction.deadline() == SimTime::max());
  reaction.on_cnp(10_us);
  REQUIRE(reaction.deadline() == 14'001_ns);
  int steps = 0;
  while (reaction.step(seconds(1000)) != Event::None) {
    ++steps;
  }
  REQUIRE(steps < 100);
  REQUIRE(reaction.rate() == settings.line);
  REQUIRE(reaction.deadline() == SimTime::max());
  REQUIRE(reaction.alpha(seconds(1000)) == 0.0);
}

TEST_CASE("NICs that clamp, set a first rate or keep a share of the rate do so", "[transport]") {
  DcqcnSettings settings = nic_like();
  settings.first_rate = gigabits_per_second(60);
  DcqcnReaction first(settings);
  first.on_cnp(SimTime());
  REQUIRE(first.rate() == gigabits_per_second(60));
  REQUIRE(first.target() == 60e9);

  settings = nic_like();
  settings.clamp_target = true;
  DcqcnReaction clamped(settings);
  for (const std::int64_t at : {0, 5}) {
    clamped.on_cnp(microseconds(at));
    clamped.advance(microseconds(at + 4));
  }
  clamped.advance(9_us);
  REQUIRE(clamped.target() < 51e9);

  settings = nic_like();
  settings.alpha_weight = 1.0;
  settings.min_share = 0.5;
  DcqcnReaction kept(settings);
  kept.on_cnp(SimTime());
  kept.advance(5_us);
  REQUIRE(kept.current() == 50e9);
}

TEST_CASE("a cut after an increase by the timer alone keeps the target where firmware says so",
          "[transport]") {
  for (const bool after_timer : {true, false}) {
    DcqcnSettings settings = nic_like();
    settings.clamp_after_timer = after_timer;
    DcqcnReaction reaction(settings);
    reaction.on_cnp(SimTime());
    reaction.advance(400_us);  // One increase.
    reaction.on_cnp(401_us);
    reaction.advance(405_us);
    REQUIRE((reaction.target() < 80e9) == after_timer);
  }
}

TEST_CASE(
    "fast recovery may last one expiry longer, hyper steps may not grow, targets may not stop",
    "[transport]") {
  DcqcnSettings settings = paper_like();
  settings.byte_counter = Bytes(0);
  const auto target_after = [&](std::int64_t timers) {
    DcqcnReaction reaction(settings, 1e9);
    reaction.on_cnp(SimTime());
    reaction.advance(55_us * timers);
    return reaction.target();
  };
  REQUIRE(target_after(4) == 1e9);
  REQUIRE(target_after(5) == 1e9 + 40e6);
  REQUIRE(target_after(7) == 1e9 + 40e6 + 200e6 + 400e6);
  settings.hyper_grows = false;
  REQUIRE(target_after(7) == 1e9 + 40e6 + 200e6 + 200e6);
  settings.fast_recovery = FastRecovery::UpTo;
  REQUIRE(target_after(5) == 1e9);
  REQUIRE(target_after(6) == 1e9 + 200e6);
  settings.hyper = gigabits_per_second(100);
  REQUIRE(target_after(6) == 40e9);
  settings.cap_target = false;
  REQUIRE(target_after(6) == 101e9);
}

TEST_CASE("the notification point sends the golden CNPs", "[transport]") {
  const ConfigNode section = transport_goldens("dcqcn_np");
  const SimTime interval =
      microseconds(golden_integer(section.required("interval_us").as_string()));
  DcqcnNotification point;
  std::vector<double> sent;
  for (const double arrival : golden_numbers(section, "marked_arrivals_us")) {
    if (point.on_marked(interval, microseconds(std::llround(arrival)))) {
      sent.push_back(arrival);
    }
  }
  REQUIRE(sent == golden_numbers(section, "cnp_times_immediate_only_us"));
}

}  // namespace trainyard
