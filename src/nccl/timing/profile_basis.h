// SPDX-License-Identifier: Apache-2.0
// The measurements that a profile of one machine rests on, and which predictions are beyond them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "collectives/schedule/operation.h"
#include "nccl/machine/machine_kind.h"
#include "sim/units.h"

namespace trainyard {
class Fields;
}

namespace trainyard::nccl {

struct ProfileBasis {
  struct Rows {
    Operation operation = Operation::AllReduce;
    int ranks = 0;
    Bytes least;  // Sizes, both included.
    Bytes most;
    std::size_t count = 0;
  };
  MachineKind machine;
  std::vector<Rows> rows;  // At least one; one for each operation and number of ranks.

  // Names what is beyond the rows: "no row of alltoall", "rows of all_reduce with 8 ranks, not 16",
  // "rows of all_reduce from 1KiB to 64MiB"; nothing if all is within.
  [[nodiscard]] std::optional<std::string> beyond(const MachineKind& of, Operation operation,
                                                  int ranks, Bytes size) const;
};

void basis_fields(Fields& fields, ProfileBasis& basis);

}  // namespace trainyard::nccl
