// SPDX-License-Identifier: Apache-2.0
// Times what one rank computes of one layer, and of the ends of the model, for one micro-batch: a
// list of operators from the shapes of the model and the degrees of the plan. Traffic is
// step_traffic.h.
#pragma once

#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/operators/operator_time.h"
#include "parallelism/operators/step_parts.h"
#include "parallelism/workload/software_profile.h"

namespace trainyard {

struct PassTimes {
  StepParts forward;
  // The memory-bound part that no selective recomputation runs again: weights that were gathered
  // are in place, outputs of attention are kept.
  SimTime kept;
  // Parts of the forward pass, with their casts: the last product of a layer without experts, and
  // those that make queries, keys and values.
  StepParts last_product;
  StepParts projections;
  StepParts input_gradient;
  StepParts weight_gradient;
};

// Returns the times without what is computed again. `load`: what the experts of this rank get over
// the mean of all ranks.
[[nodiscard]] PassTimes layer_times(const Model& model, const ModelLayer& layer,
                                    const ParallelPlan& plan, const OperatorTimes& operators,
                                    double load = 1.0);

// Returns the time that selective recomputation runs again of a forward pass: the core of
// attention; or, where the software runs every second product again, half of the products with
// their casts, and all operators that are bound by memory, as nothing is kept of them.
[[nodiscard]] SimTime recomputed_selectively(const PassTimes& times, bool recomputes_products);

// Returns the parts that full recomputation runs again of a forward pass.
[[nodiscard]] StepParts recomputed_fully(const PassTimes& times, FullRecompute kind);

// Look-up of tokens, or product of patches, what makes the vectors of samples, and their gradients.
[[nodiscard]] PassTimes embedding_times(const Model& model, const ParallelPlan& plan,
                                        const OperatorTimes& operators);

// Logits, other linear layers of the head, and loss.
[[nodiscard]] PassTimes head_times(const Model& model, const ParallelPlan& plan,
                                   const OperatorTimes& operators);

}  // namespace trainyard
