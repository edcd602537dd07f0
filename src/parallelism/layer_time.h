// SPDX-License-Identifier: Apache-2.0
// What one rank computes of one layer, and of the ends of the model, for one micro-batch: a list of
// operators from the shapes of the model and the degrees of the plan. Traffic is step_traffic.h.
#pragma once

#include "parallelism/model.h"
#include "parallelism/operator_time.h"
#include "parallelism/parallel_plan.h"
#include "parallelism/step_parts.h"

namespace trainyard {

struct PassTimes {
  StepParts forward;
  StepParts input_gradient;
  StepParts weight_gradient;
};

// Without what is computed again: that is the forward pass, or of it StepPart::Attention, once
// more. `load`: what the experts of this rank get over the mean of all ranks.
[[nodiscard]] PassTimes layer_times(const Model& model, const ModelLayer& layer,
                                    const ParallelPlan& plan, const OperatorTimes& operators,
                                    double load = 1.0);

// Look-up of tokens, and its gradient.
[[nodiscard]] PassTimes embedding_times(const Model& model, const ParallelPlan& plan,
                                        const OperatorTimes& operators);

// The last norm, logits and loss.
[[nodiscard]] PassTimes head_times(const Model& model, const ParallelPlan& plan,
                                   const OperatorTimes& operators);

}  // namespace trainyard
