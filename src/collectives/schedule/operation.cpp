// SPDX-License-Identifier: Apache-2.0
// Names and bandwidth factors of the collective operations.
#include "collectives/schedule/operation.h"

#include "sim/check.h"

namespace trainyard {

std::string_view to_string(Operation operation) {
  switch (operation) {
    case Operation::AllReduce:
      return "all_reduce";
    case Operation::AllGather:
      return "all_gather";
    case Operation::ReduceScatter:
      return "reduce_scatter";
    case Operation::AllToAll:
      return "alltoall";
    case Operation::AllToAllV:
      return "alltoallv";
    case Operation::Broadcast:
      return "broadcast";
    case Operation::Reduce:
      return "reduce";
    case Operation::SendReceive:
      return "sendrecv";
    case Operation::Scatter:
      return "scatter";
    case Operation::Gather:
      return "gather";
    case Operation::Barrier:
      return "barrier";
  }
  CHECK(false, "unknown operation");
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
  const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  switch (operation) {
    case Operation::AllReduce:
      return 2.0 * others;
    case Operation::AllGather:
    case Operation::ReduceScatter:
    case Operation::AllToAll:
    case Operation::AllToAllV:
    case Operation::Scatter:
    case Operation::Gather:
      return others;
    case Operation::Broadcast:
    case Operation::Reduce:
    case Operation::SendReceive:
      return 1.0;
    case Operation::Barrier:
      return 0.0;
  }
  CHECK(false, "unknown operation");
}

}  // namespace trainyard
