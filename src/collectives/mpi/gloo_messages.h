// SPDX-License-Identifier: Apache-2.0
// The messages of Gloo's algorithms that are written out here (docs/models/gloo.md says what each
// does). Chunks of a ring of all_reduce and reduce are its segments; others have two for each rank,
// or one.
#pragma once

#include <cstdint>

#include "collectives/mpi/mpi_call.h"
#include "collectives/mpi/mpi_messages.h"

namespace trainyard {

// At least two for each rank, and of at most 1 MiB.
[[nodiscard]] std::uint32_t gloo_segments(const MpiCall& call);

void write_gloo_ring(MpiWriter& writer);          // All_reduce, in segments.
void write_gloo_reduce(MpiWriter& writer);        // The same and a gather.
void write_gloo_ring_chunked(MpiWriter& writer);  // Two chunks for each rank.
void write_gloo_bcube(MpiWriter& writer);         // A chunk for each rank.
void write_gloo_ring_gather(MpiWriter& writer);   // All_gather, two chunks for each rank.

}  // namespace trainyard
