// SPDX-License-Identifier: Apache-2.0
#include "support/dcqcn_fluid.h"

#include <algorithm>
#include <cmath>

#include "sim/check.h"

namespace trainyard {
namespace {

// In packets and seconds.
struct Terms {
  double rate = 0.0;
  double additive = 0.0;
  double hyper = 0.0;
  double counter = 0.0;  // 0: none.
  double timer = 0.0;
  double cnp = 0.0;
  double alpha = 0.0;
  double threshold = 0.0;
};

// 1 - (1-p)^n, exact for small p.
double some_of(double p, double n) {
  return -std::expm1(n * std::log1p(-p));
}

// p / ((1-p)^-n - 1): how often n packets in a row go unmarked.
double unmarked(double p, double n) {
  return p / std::expm1(-n * std::log1p(-p));
}

// Cuts less increases: rises with p, zero at the fixed point.
double excess(const Terms& terms, double p) {
  const double in_timer = terms.timer * terms.rate;
  const double by_counter = terms.counter > 0.0 ? unmarked(p, terms.counter) : 0.0;
  const double by_timer = unmarked(p, in_timer);
  const double none = std::log1p(-p);
  const double recovered_counter = by_counter * std::exp(terms.threshold * terms.counter * none);
  const double recovered_timer = by_timer * std::exp(terms.threshold * in_timer * none);
  const double cut = some_of(p, terms.cnp * terms.rate);
  return some_of(p, terms.alpha * terms.rate) * cut * cut -
         terms.cnp * terms.cnp * terms.additive * terms.rate *
             (recovered_counter + recovered_timer) * (by_counter + by_timer);
}

// Where `rising` is zero, a function that rises with p.
template <typename Function>
double solve(double min, const Function& rising) {
  constexpr int kHalvings = 200;
  double low = std::log(min);
  double high = std::log(0.999);
  for (int i = 0; i < kHalvings && low < high; ++i) {
    const double middle = (low + high) / 2.0;
    (rising(std::exp(middle)) < 0.0 ? low : high) = middle;
  }
  return std::exp((low + high) / 2.0);
}

// Sums end where terms are less likely than this.
constexpr double kNegligible = 1e-12;

// How likely no CNP has come `time` after the last one.
double quiet(const Terms& terms, double p, double time) {
  return time <= terms.cnp ? 1.0 : std::exp(terms.rate * (time - terms.cnp) * std::log1p(-p));
}

// One rise of alpha a cycle, and a fall for each of its intervals without a CNP.
double cycle_alpha(const Terms& terms, double p) {
  double falls = 0.0;
  double term = 1.0;
  for (int k = 1; term > kNegligible; ++k) {
    term = quiet(terms, p, k * terms.alpha);
    falls += term;
  }
  return 1.0 / (1.0 + falls);
}

// Returns the rate that a flow has lost on average from one CNP to the next, in packets a second.
double cycle_loss(const Terms& terms, double p) {
  double target = 0.0;  // RT and RC less the rate before the cut.
  double rate = -terms.rate * cycle_alpha(terms, p) / 2.0;
  double mean = 0.0;
  double still = 1.0;  // No CNP yet.
  double timers = 0.0;
  double counters = 0.0;
  const double counter = terms.counter / terms.rate;
  while (still > kNegligible) {
    const double by_timer = (timers + 1.0) * terms.timer;
    const double by_bytes = (counters + 1.0) * counter;
    const bool is_timer = counter <= 0.0 || by_timer <= by_bytes;
    const double next = quiet(terms, p, is_timer ? by_timer : by_bytes);
    mean += rate * (still - next);
    still = next;
    (is_timer ? timers : counters) += 1.0;
    const double min = counter > 0.0 ? std::min(timers, counters) : timers;
    const double hyper_steps = min - terms.threshold;
    if (hyper_steps > 0.0) {
      target += hyper_steps * terms.hyper;
    } else if (std::max(timers, counters) >= terms.threshold) {
      target += terms.additive;
    }
    rate = (rate + target) / 2.0;
  }
  return -mean;
}

Terms terms_of(const DcqcnFluid& fluid, int flows) {
  const double bits = 8.0 * static_cast<double>(fluid.packet.count());
  Terms terms;
  terms.rate = static_cast<double>(fluid.line.bits_per_second()) / bits / flows;
  terms.additive = static_cast<double>(fluid.additive.bits_per_second()) / bits;
  terms.hyper = static_cast<double>(fluid.hyper.bits_per_second()) / bits;
  terms.counter = static_cast<double>(fluid.byte_counter.count()) * 8.0 / bits;
  terms.timer = fluid.rate_timer.seconds();
  terms.cnp = fluid.cnp_interval.seconds();
  terms.alpha = fluid.alpha_interval.seconds();
  terms.threshold = fluid.threshold;
  return terms;
}

void set_queue(const DcqcnFluid& fluid, DcqcnFixedPoint& point) {
  point.is_pinned = point.mark > fluid.pmax;
  const auto kmin = static_cast<double>(fluid.kmin.count());
  const auto kmax = static_cast<double>(fluid.kmax.count());
  point.queue = point.is_pinned ? kmax : kmin + point.mark / fluid.pmax * (kmax - kmin);
}

}  // namespace

DcqcnFixedPoint dcqcn_fixed_point(const DcqcnFluid& fluid, int flows) {
  CHECK(flows > 0, "a fixed point of no flows");
  const Terms terms = terms_of(fluid, flows);
  DcqcnFixedPoint point;
  point.mark = solve(1e-12, [&](double p) { return excess(terms, p); });
  const double timer = 1.0 / (terms.timer * terms.rate);
  const double events = timer + (terms.counter > 0.0 ? 1.0 / terms.counter : 0.0);
  point.mark_approx =
      std::cbrt(terms.additive / (terms.alpha * terms.rate * terms.rate) * events * events);
  point.alpha = some_of(point.mark, terms.alpha * terms.rate);
  set_queue(fluid, point);
  return point;
}

DcqcnFixedPoint dcqcn_cycle_point(const DcqcnFluid& fluid, int flows) {
  CHECK(flows > 0, "a fixed point of no flows");
  const Terms terms = terms_of(fluid, flows);
  DcqcnFixedPoint point;
  const double min = 1e-3 / (terms.timer * terms.rate);
  point.mark = solve(min, [&](double p) { return cycle_loss(terms, p); });
  point.alpha = cycle_alpha(terms, point.mark);
  set_queue(fluid, point);
  return point;
}

}  // namespace trainyard
