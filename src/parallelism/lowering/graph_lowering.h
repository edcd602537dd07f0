// SPDX-License-Identifier: Apache-2.0
// A training step as an operation graph: micro-batches on the stages of the pipeline in the order
// of its schedule, layer by layer, with all traffic of the plan.
//
// Streams of a rank, as far as it needs them: "compute"; "host", which launches small layers; one
// for each kind of traffic, "tensor", "context", "expert" and "data"; and one for each direction,
// kind and neighbour of messages between stages. What each rank does:
// - with ZeRO 1 or 2 and overlap, gathers its weights in buckets, which its first forward passes
//   wait for;
// - runs its passes, units of pass_units.h one after the other; with ZeRO 3 the weights of a unit
//   are gathered while the unit before it runs, and its gradients reduced while the next one does;
// - reduces gradients, in buckets as the last backward pass of each chunk makes them, or without
//   overlap all at once at the end; sums those of tied embeddings;
// - waits for all ranks, as clipping by the norm of all gradients does; runs the optimizer; and
//   without overlap gathers the new weights.
// Transfers between stages are buffered messages, on streams of their own, or on that of
// computation where software does not overlap them. docs/models/step-graph.md compares this with
// the closed forms.
#pragma once

#include <cstdint>
#include <vector>

#include "parallelism/closed_forms/step_time.h"
#include "parallelism/graph/operation_graph.h"
#include "parallelism/model/pipeline_schedule.h"

namespace trainyard {

enum class Folding : std::uint8_t {
  // One rank for each rank of the pipeline: the others of a stage do the same at the same time.
  // Groups of one kind take the time of the widest.
  Folded,
  Unfolded,  // Every rank.
};

// A pass of a rank, from the first to the last of its computation.
struct LoweredPass {
  int rank = 0;
  int place = 0;  // Where the rank stands in its pipeline.
  Pass pass;
  OperationId first;
  OperationId last;
};

struct StepGraph {
  OperationGraph graph;
  // Passes by rank in the graph, in the order of the schedule.
  std::vector<LoweredPass> passes = {};
};

// Lowers a plan that passed check(); throws as check_modelled().
[[nodiscard]] StepGraph lower_step(const StepJob& job, Folding folding);

}  // namespace trainyard
