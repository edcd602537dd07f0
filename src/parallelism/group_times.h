// SPDX-License-Identifier: Apache-2.0
// How long the traffic of a step takes, as the step model asks for it.
#pragma once

#include <string>
#include <vector>

#include "collectives/operation.h"
#include "sim/units.h"

namespace trainyard {

class GroupTimes {
 public:
  GroupTimes() = default;
  GroupTimes(const GroupTimes&) = delete;
  GroupTimes& operator=(const GroupTimes&) = delete;
  virtual ~GroupTimes() = default;

  // Of one collective of these ranks, in their order; `size` in the sense of nccl-tests. At least
  // two ranks.
  [[nodiscard]] virtual SimTime collective(Operation operation, const std::vector<int>& ranks,
                                           Bytes size) = 0;
  // Of one message between two ranks.
  [[nodiscard]] virtual SimTime transfer(int from, int to, Bytes size) = 0;
};

}  // namespace trainyard
