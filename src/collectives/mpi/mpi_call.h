// SPDX-License-Identifier: Apache-2.0
// A call of a collective of MPI.
#pragma once

#include "collectives/schedule/operation.h"
#include "sim/ids.h"
#include "sim/units.h"

namespace trainyard {

struct MpiCall {
  Operation operation = Operation::AllReduce;
  int ranks = 1;
  Bytes size = {};  // In the sense of nccl-tests.
  RankId root = {};
};

}  // namespace trainyard
