// SPDX-License-Identifier: Apache-2.0
// The messages of the algorithms of Open MPI, MPICH and Gloo, by their names for them, for N ranks
// in host memory; gloo_messages.h has those of Gloo, the others are these. Those
// of the literature are the schedules of collectives/algorithms: ring, recursive_doubling, bruck,
// pairwise, recursive halving (halving-doubling-far), and the exchange of all with all at once.
// Trees are those of mpi_tree.h. The others, M the greatest power of two up to N, E = N - M:
//   rabenseifner   of all_reduce: the first 2E ranks are pairs that add up one half each, of which
//                  the even one gets the other's; then halving from the nearest partner on, with
//                  the halves of the buffer, and doubling back
//   butterfly      of reduce_scatter: the odd ones of the pairs take all; then as above among M
//                  blocks; a rank then has the block of its number with bits mirrored, and sends it
//                  (Traff, EuroPVM/MPI 2005)
//   neighbor       of all_gather: N/2 rounds in which neighbours swap the last two blocks
//   split_binary_tree
//                  of broadcast: half of the data down each side of the root, which pairs of ranks
//                  from both sides then exchange
//   scatter_allgather
//                  of broadcast: a binomial scatter, then doubling; who has no partner gets what it
//                  lacks along a tree of those that have it
//   linear_sync    of gather: the root asks each rank, one by one
//   nonoverlapping a reduce to rank 0, and then a broadcast, or a scatter
// and of MPICH:
//   reduce_scatter_allgather
//                  rabenseifner, but the even ones of the pairs give all to the odd ones and get
//                  all back
//   reduce_scatter_gather
//                  of reduce: the odd ones of the pairs give all to the even ones; halving as
//                  above, and back to the root along a tree of the same pairs
//   scatter_recursive_doubling_allgather, scatter_ring_allgather
//                  of broadcast: scatter_allgather; the same scatter, then a ring
//   pairwise       of reduce_scatter: round i gives rank r + i its block, and takes one of r - i
//   scattered      of alltoall: all to all at once, by 32 ranks at a time
// Fixed decisions ask for no segments, so that nothing is a pipeline and segmented_ring is a ring.
// Sources: open-mpi/ompi @ffb0adcdd677 (v4.1.4), ompi/mca/coll/base/coll_base_OPERATION.c;
// pmodels/mpich @fba49d670a7c (v4.1.2), src/mpi/coll/OPERATION/OPERATION_intra_NAME.c.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "collectives/mpi/mpi_call.h"
#include "collectives/mpi/mpi_rules.h"
#include "collectives/schedule/schedule.h"

namespace trainyard {

// The algorithm that the library runs where this one is asked for: another one where the call has
// fewer elements (of 4 bytes) than it needs or a number of ranks that it cannot do. None for what
// has no schedule here.
[[nodiscard]] std::optional<std::string> mpi_algorithm(std::string_view name, const MpiCall& call);

// Each rank first copies this from one of its buffers to another.
struct MpiCopies {
  enum class Sent : std::uint8_t { Nothing, Block, Whole };
  Bytes bytes;
  Sent sent = Sent::Nothing;  // Others get its own block, or all of its data.
};
[[nodiscard]] MpiCopies mpi_copies(std::string_view name, const MpiCall& call);

// How many messages a rank may have under way at the same time: receives that it has posted in
// advance, and sends that have not ended when it sends the next one after a receive.
[[nodiscard]] std::uint32_t mpi_under_way(std::string_view name, const MpiCall& call);

// `name` is what mpi_algorithm() gave. Where it calls other operations the rules choose for them.
[[nodiscard]] std::unique_ptr<Schedule> mpi_schedule(std::string_view name, const MpiCall& call,
                                                     const MpiRules& rules);

}  // namespace trainyard
