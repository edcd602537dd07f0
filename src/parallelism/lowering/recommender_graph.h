// SPDX-License-Identifier: Apache-2.0
// A step of a recommendation model as a graph of operations: look-ups for the batches of all ranks,
// an AllToAll that brings each rank the sums of its own samples, the MLPs beside it, the way back
// with gradients, and the sum of dense gradients.
//
// It is a step among many: where the indices of a batch are sent during the step before, those of
// the next batch are on their way in this one.
#pragma once

#include <string_view>

#include "parallelism/graph/operation_graph.h"
#include "parallelism/memory/recommender_time.h"

namespace trainyard {

// All ranks, none of them folded: their tables differ.
[[nodiscard]] OperationGraph lower_recommender(const RecommenderJob& job);

// Returns the name of a part of the step where it is one of a recommendation model: "lookups",
// "vectors", ...; empty for those that it has not.
[[nodiscard]] std::string_view recommender_part_name(StepPart part);

}  // namespace trainyard
