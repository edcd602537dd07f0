// SPDX-License-Identifier: Apache-2.0
// Counts what a plan asks of the network between servers: bytes that leave a server, for each GPU
// and step.
//
// All groups of a kind count as the widest of them. Collectives count as rings that enter each
// server once: of what a rank sends, the share S / n leaves a group of n ranks on S > 1 servers. Of
// alltoall it is the share of the other ranks that are elsewhere, of what goes round context ranks
// or from stage to stage the hops between servers.
#pragma once

#include <span>

#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/workload/software_profile.h"

namespace trainyard {

// Mean of all GPUs, in bytes of a step, for a plan that passed check().
[[nodiscard]] double network_bytes(const Model& model, const ParallelPlan& plan,
                                   const SoftwareProfile& software,
                                   std::span<const int> server_of_rank);

}  // namespace trainyard
