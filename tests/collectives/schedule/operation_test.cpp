// SPDX-License-Identifier: Apache-2.0
// Names and bandwidth factors, the latter against ratios that nccl-tests printed.
#include "support/catch.h"

#include <string>

#include "collectives/schedule/operation.h"

namespace trainyard {
namespace {

TEST_CASE("every operation's name is read back as the operation") {
  for (const Operation operation : kOperations) {
    REQUIRE(parse_operation(to_string(operation)) == operation);
  }
  REQUIRE(kOperations.size() == 11);
}

TEST_CASE("other spellings are not operations") {
  for (const char* name :
       {"", "allreduce", "all_to_all", "all_reduce_perf", "All_Reduce", "send"}) {
    REQUIRE_FALSE(parse_operation(name).has_value());
  }
}

TEST_CASE("the list of names for error texts is complete and in order") {
  std::string names;
  for (const Operation operation : kOperations) {
    names += names.empty() ? "" : ", ";
    names += to_string(operation);
  }
  REQUIRE(operation_names() == names);
}

TEST_CASE("bus bandwidth factors are those of nccl-tests") {
  REQUIRE(bus_factor(Operation::AllReduce, 8) == 1.75);
  REQUIRE(bus_factor(Operation::AllReduce, 16) == 1.875);
  REQUIRE(bus_factor(Operation::AllGather, 8) == 0.875);
  REQUIRE(bus_factor(Operation::ReduceScatter, 8) == 0.875);
  REQUIRE(bus_factor(Operation::AllToAll, 4) == 0.75);
  REQUIRE(bus_factor(Operation::AllToAllV, 4) == 0.75);
  REQUIRE(bus_factor(Operation::Barrier, 4) == 0.0);
  REQUIRE(bus_factor(Operation::Scatter, 2) == 0.5);
  REQUIRE(bus_factor(Operation::Gather, 2) == 0.5);
  REQUIRE(bus_factor(Operation::Broadcast, 12) == 1.0);
  REQUIRE(bus_factor(Operation::Reduce, 12) == 1.0);
  REQUIRE(bus_factor(Operation::SendReceive, 8) == 1.0);
  REQUIRE(bus_factor(Operation::AllReduce, 1) == 0.0);
}

}  // namespace
}  // namespace trainyard
