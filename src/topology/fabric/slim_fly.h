// SPDX-License-Identifier: Apache-2.0
// Slim Fly: 2 q^2 switches, of which any two are at most two cables apart.
//
// The graphs of McKay, Miller and Siran (A note on large graphs of diameter two and given maximum
// degree, 1998), as Besta and Hoefler write them (Slim Fly: A cost effective low-diameter network
// topology, SC '14). q = 4 w + delta is a power of a prime, delta -1, 0 or 1; xi generates the
// nonzero elements of the field of q elements; X holds (q - delta) / 2 powers of xi, those of even
// exponents for delta 0 and 1, and X' is xi X. Switches are (0, x, y) and (1, m, c), with
//
//     (0, x, y) ~ (0, x, y')  iff  y - y' is in X
//     (1, m, c) ~ (1, m, c')  iff  c - c' is in X'
//     (0, x, y) ~ (1, m, c)   iff  y = m x + c
//
// so each has (3 q - delta) / 2 cables to others. Both kinds of x (or m) stand in one rack: the
// deployed system of q = 5 is built so (Blach et al., NSDI '24).
#pragma once

#include <memory>
#include <vector>

#include "topology/fabric/fabric.h"

namespace trainyard {

struct SlimFlyCable {
  int from = 0;  // Switch (s, x, y) has number (s q + x) q + y.
  int to = 0;
};

struct SlimFlySpec : GroupLinks {
  int q = 0;
  int degree = 0;                         // Cables of a switch to other switches.
  std::vector<SlimFlyCable> cables = {};  // Between switches, each once.
  int endpoints_per_switch = 1;

  [[nodiscard]] int switches() const { return 2 * q * q; }
  [[nodiscard]] int rack(int at) const { return at / q % q; }
};

void slim_fly_fields(Fields& fields, FabricKeys& keys);

[[nodiscard]] std::unique_ptr<Fabric> read_slim_fly(const FabricContext& context);

}  // namespace trainyard
