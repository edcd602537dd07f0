// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "parallelism/operators/step_parts.h"

namespace trainyard {

// Passes of a part of the model, with their traffic.
struct StepPasses {
  StepParts forward;
  StepParts input_gradient;
  StepParts weight_gradient;

  StepPasses& operator+=(const StepPasses& other) {
    forward += other.forward;
    input_gradient += other.input_gradient;
    weight_gradient += other.weight_gradient;
    return *this;
  }
  [[nodiscard]] SimTime backward() const {
    return input_gradient.total() + weight_gradient.total();
  }
};

}  // namespace trainyard
