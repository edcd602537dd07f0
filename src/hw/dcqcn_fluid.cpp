// SPDX-License-Identifier: Apache-2.0
#include "hw/dcqcn_fluid.h"

#include <cmath>

#include "sim/check.h"

namespace trainyard {
namespace {

// In packets and seconds.
struct Terms {
  double rate = 0.0;
  double additive = 0.0;
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

double solve(const Terms& terms) {
  constexpr int kHalvings = 200;
  double low = std::log(1e-12);
  double high = std::log(0.999);
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2.0;
    (excess(terms, std::exp(middle)) < 0.0 ? low : high) = middle;
  }
  return std::exp((low + high) / 2.0);
}

}  // namespace

DcqcnFixedPoint dcqcn_fixed_point(const DcqcnFluid& fluid, int flows) {
  CHECK(flows > 0, "a fixed point of no flows");
  const double bits = 8.0 * static_cast<double>(fluid.packet.count());
  Terms terms;
  terms.rate = static_cast<double>(fluid.line.bits_per_second()) / bits / flows;
  terms.additive = static_cast<double>(fluid.additive.bits_per_second()) / bits;
  terms.counter = static_cast<double>(fluid.byte_counter.count()) * 8.0 / bits;
  terms.timer = fluid.rate_timer.seconds();
  terms.cnp = fluid.cnp_interval.seconds();
  terms.alpha = fluid.alpha_interval.seconds();
  terms.threshold = fluid.threshold;

  DcqcnFixedPoint point;
  point.mark = solve(terms);
  const double events =
      (terms.counter > 0.0 ? 1.0 / terms.counter : 0.0) + 1.0 / (terms.timer * terms.rate);
  point.mark_approx =
      std::cbrt(terms.additive / (terms.alpha * terms.rate * terms.rate) * events * events);
  point.alpha = some_of(point.mark, terms.alpha * terms.rate);
  point.is_pinned = point.mark > fluid.pmax;
  const auto kmin = static_cast<double>(fluid.kmin.count());
  const auto kmax = static_cast<double>(fluid.kmax.count());
  point.queue = point.is_pinned ? kmax : kmin + point.mark / fluid.pmax * (kmax - kmin);
  return point;
}

}  // namespace trainyard
