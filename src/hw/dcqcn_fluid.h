// SPDX-License-Identifier: Apache-2.0
// Where DCQCN comes to rest: the fixed point of its fluid model (Zhu et al., SIGCOMM 2015, section
// 5; CoNEXT 2016, section 3). For pages and tests: what many flows at one queue should be near to.
// Real numbers, with the mathematical library.
#pragma once

#include <cstdint>

#include "sim/units.h"

namespace trainyard {

struct DcqcnFluid {
  Bandwidth line{};          // C
  Bandwidth additive{};      // R_AI
  Bytes byte_counter{};      // B; 0: none.
  SimTime rate_timer{};      // T
  SimTime cnp_interval{};    // tau
  SimTime alpha_interval{};  // tau'
  int threshold = 5;         // F
  Bytes packet{1000};
  Bytes kmin{};
  Bytes kmax{};
  double pmax = 0.01;
};

struct DcqcnFixedPoint {
  double mark = 0.0;         // p
  double mark_approx = 0.0;  // Of the closed form for small p: for intuition, 20 to 60 % too high.
  double alpha = 0.0;
  double queue = 0.0;      // Bytes; Kmax where it is pinned.
  bool is_pinned = false;  // p is above Pmax: the queue swings about Kmax.
};

// For `flows` equal flows, each at C / flows. With p the share of marked packets, R in packets/s:
//   alpha = 1 - (1-p)^(tau' R)    d = 1 - (1-p)^(tau R)
//   e_B = p / ((1-p)^-B - 1)      e_T = p / ((1-p)^-(T R) - 1)
//   alpha d^2 = tau^2 R_AI R ((1-p)^(F B) e_B + (1-p)^(F T R) e_T) (e_B + e_T)
//   queue = Kmin + (p / Pmax) (Kmax - Kmin)
[[nodiscard]] DcqcnFixedPoint dcqcn_fixed_point(const DcqcnFluid& fluid, int flows);

}  // namespace trainyard
