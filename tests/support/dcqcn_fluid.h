// SPDX-License-Identifier: Apache-2.0
// DCQCN comes to rest at the fixed point of its fluid model (Zhu et al., SIGCOMM 2015, section 5;
// CoNEXT 2016, section 3): many flows at one queue should be near to it.
#pragma once

#include <cstdint>

#include "sim/units.h"

namespace trainyard {

struct DcqcnFluid {
  Bandwidth line{};          // C
  Bandwidth additive{};      // R_AI
  Bandwidth hyper{};         // R_HAI: for dcqcn_cycle_point() alone.
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

// The same by following one flow from a CNP to the next, as notification and reaction points work
// (our own, docs/models/dcqcn.md): a mark counts only when `cnp_interval` has passed since the last
// CNP, and that CNP restarted the timers. With s(t) the chance that no CNP has come t after the
// last,
//   s(t) = 1 until tau, then (1-p)^(R (t - tau))
//   alpha = 1 / (1 + sum of s(k tau'))
// and RT = R, RC = R (1 - alpha/2) led through the increases at k T and k B / R, p is where the
// mean RC at the next CNP is R again. When T is about tau an increase hardly ever fails to come
// first, so that flows must be marked more often than the fluid model has it. `mark_approx` is not
// set. p is not looked for where fewer than one in 1000 timers ends with a CNP.
[[nodiscard]] DcqcnFixedPoint dcqcn_cycle_point(const DcqcnFluid& fluid, int flows);

}  // namespace trainyard
