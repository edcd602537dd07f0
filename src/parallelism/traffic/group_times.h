// SPDX-License-Identifier: Apache-2.0
// Declares how long the traffic of a step takes, as the step model asks for it.
#pragma once

#include <vector>

#include "collectives/schedule/operation.h"
#include "parallelism/model/parallel_plan.h"
#include "sim/units.h"

namespace trainyard {

class GroupTimes {
 public:
  GroupTimes() = default;
  GroupTimes(const GroupTimes&) = delete;
  GroupTimes& operator=(const GroupTimes&) = delete;
  virtual ~GroupTimes() = default;

  // Lets groups of this plan work from now on at the same time as those of their kind; without a
  // plan, and where it is not known what they share, each is alone. A plan never makes a time
  // shorter.
  virtual void use_plan(const ParallelPlan& /*plan*/) {}
  // Returns the time of one collective of these ranks, in their order; `size` in the sense of
  // nccl-tests. At least two ranks.
  [[nodiscard]] virtual SimTime collective(Operation operation, const std::vector<int>& ranks,
                                           Bytes size) = 0;
  // Returns the time of one message between two ranks.
  [[nodiscard]] virtual SimTime transfer(int from, int to, Bytes size) = 0;
};

}  // namespace trainyard
