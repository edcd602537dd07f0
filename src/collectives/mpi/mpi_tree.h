// SPDX-License-Identifier: Apache-2.0
// The trees along which Open MPI, MPICH and Gloo broadcast, reduce, gather and scatter. Ranks are
// counted from the root on, v = (rank - root) mod N:
//   linear    everybody is a child of 0
//   chain     the child of v is v + 1
//   binary    on level l = floor(log2(v + 1)) the children are v + 2^l and v + 2^(l+1)
//   binomial  the parent of v is v without its highest bit; children come from the nearest on
//   in_order  the parent of v is v without its lowest bit, so that below v are ranks in a row;
//             children come from the nearest on
//   in_order_far
//             the same, but children come from the farthest on, as in MPICH's broadcast
//   knomial   the same to the base 4; children come from the farthest power on
//   in_order_binary
//             the children of the last of n ranks in a row are the one before it and the last of
//             the first floor(n / 2); its root is rank N - 1 whatever the root of the call
// Source: open-mpi/ompi @ffb0adcdd677 (v4.1.4), ompi/mca/coll/base/coll_base_topo.c (shapes, radix
// 4 in coll_tuned_bcast_decision.c); pmodels/mpich @fba49d670a7c (v4.1.2), src/mpi/coll; binomial
// is Gloo's, too (gloo/broadcast.cc). Fixed decisions give no fan-out: a chain is a pipeline.
#pragma once

#include <cstdint>
#include <vector>

namespace trainyard {

enum class MpiTreeKind : std::uint8_t {
  Linear,
  Chain,
  Binary,
  Binomial,
  InOrder,
  InOrderFar,
  Knomial,
  InOrderBinary,
};

struct MpiTree {
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  std::uint32_t root = 0;
  std::vector<std::uint32_t> parent = {};                 // Indexed by rank; kNone: the root.
  std::vector<std::vector<std::uint32_t>> children = {};  // The same, in Open MPI's order.

  // All ranks below this one, itself first.
  [[nodiscard]] std::vector<std::uint32_t> below(std::uint32_t rank) const;
};

[[nodiscard]] MpiTree mpi_tree(MpiTreeKind kind, std::uint32_t ranks, std::uint32_t root);

}  // namespace trainyard
