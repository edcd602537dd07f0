// SPDX-License-Identifier: Apache-2.0
// The table of the collective operations, with names and bandwidth factors.
#include "collectives/schedule/operation.h"

#include "sim/check.h"

namespace trainyard {
namespace {

constexpr std::array<OperationRow, kOperations.size()> kRows{
    {{.name = "all_reduce", .others_factor = 2.0},
     {.name = "all_gather", .splits = true, .others_factor = 1.0},
     {.name = "reduce_scatter", .splits = true, .others_factor = 1.0},
     {.name = "alltoall", .splits = true, .others_factor = 1.0},
     {.name = "alltoallv", .splits = true, .others_factor = 1.0},
     {.name = "broadcast", .has_root = true, .whole_factor = 1.0},
     {.name = "reduce", .has_root = true, .whole_factor = 1.0},
     {.name = "sendrecv", .whole_factor = 1.0},
     {.name = "scatter", .splits = true, .has_root = true, .others_factor = 1.0},
     {.name = "gather", .splits = true, .has_root = true, .others_factor = 1.0},
     {.name = "barrier"}}};

}  // namespace

const OperationRow& row_of(Operation operation) {
  return kRows.at(static_cast<std::size_t>(operation));
}

std::string_view to_string(Operation operation) {
  return row_of(operation).name;
}

std::optional<Operation> parse_operation(std::string_view name) {
  for (const Operation operation : kOperations) {
    if (name == to_string(operation)) {
      return operation;
    }
  }
  return std::nullopt;
}

std::string_view operation_names() {
  return "all_reduce, all_gather, reduce_scatter, alltoall, alltoallv, broadcast, reduce, "
         "sendrecv, "
         "scatter, gather, barrier";
}

double bus_factor(Operation operation, int ranks) {
  CHECK(ranks >= 1, "a collective needs a rank");
  const OperationRow& row = row_of(operation);
  const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return row.others_factor * others + row.whole_factor;
}

}  // namespace trainyard
