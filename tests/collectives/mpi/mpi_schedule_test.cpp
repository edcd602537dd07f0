// SPDX-License-Identifier: Apache-2.0
// Every algorithm of Open MPI's, MPICH's and Gloo's rules is proved to be its operation, for powers
// of two and others.
#include "support/catch.h"

#include "collectives/mpi/mpi_schedule.h"

#include <set>

#include "collectives/schedule/semantics.h"
#include "support/mpi.h"

namespace trainyard {
namespace {

void require_proof(const std::string& name, const MpiCall& call, const MpiRules& rules) {
  INFO(to_string(call.operation) << " by " << name << " of " << call.ranks << ", root "
                                 << call.root.value());
  const auto schedule = mpi_schedule(name, call, rules);
  const auto violation = find_violation(*schedule);
  INFO((violation ? violation->text : ""));
  REQUIRE_FALSE(violation.has_value());
}

void require_proofs(const MpiRules& rules, Operation operation, Bytes size) {
  const bool has_root = row_of(operation).has_root;
  for (int ranks = 1; ranks <= 33; ++ranks) {
    for (const int root : std::set<int>{0, has_root ? ranks / 2 : 0, has_root ? ranks - 1 : 0}) {
      const MpiCall call{.library = rules.library,
                         .operation = operation,
                         .ranks = ranks,
                         .size = size,
                         .root = RankId(static_cast<std::uint32_t>(root))};
      for (const std::string& wanted : rules.rule(operation)->algorithms) {
        if (const auto name = mpi_algorithm(wanted, call)) {
          require_proof(*name, call, rules);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("every algorithm of a library is proved for 1 to 33 ranks and several roots",
          "[collectives][mpi]") {
  for (const std::string_view file : kShippedMpiRules) {
    const MpiRules rules = shipped_mpi_rules(file);
    for (const auto& [operation, rule] : rules.rules) {
      require_proofs(rules, *parse_operation(operation), mib(1));
    }
  }
}

TEST_CASE("rings of Gloo are proved with more than two segments for each rank",
          "[collectives][mpi]") {
  const MpiRules gloo = shipped_mpi_rules("gloo");
  require_proofs(gloo, Operation::AllReduce, mib(150));
  require_proofs(gloo, Operation::Reduce, mib(150));
}

TEST_CASE("whatever the rules choose has a schedule", "[collectives][mpi]") {
  for (const std::string_view file : kShippedMpiRules) {
    const MpiRules rules = shipped_mpi_rules(file);
    for (const auto& [operation, rule] : rules.rules) {
      MpiCall call{.library = rules.library, .operation = *parse_operation(operation)};
      for (call.ranks = 1; call.ranks <= 8'192; call.ranks += 1 + call.ranks / 8) {
        for (call.size = Bytes(4); call.size <= gib(1); call.size = call.size * 2) {
          const std::string& name = rules.choose(call.operation, call.ranks, call.size);
          INFO(operation << " of " << call.ranks << ", " << to_string(call.size) << ": " << name);
          REQUIRE(mpi_algorithm(name, call).has_value());
        }
      }
    }
  }
}

TEST_CASE("MPICH halves nothing that has fewer elements than ranks halve it",
          "[collectives][mpi]") {
  MpiCall call{.library = MpiLibrary::Mpich, .operation = Operation::AllReduce, .ranks = 9};
  call.size = Bytes(32);
  REQUIRE(mpi_algorithm("reduce_scatter_allgather", call) == "reduce_scatter_allgather");
  call.size = Bytes(28);
  REQUIRE(mpi_algorithm("reduce_scatter_allgather", call) == "recursive_doubling");
  call.operation = Operation::Reduce;
  REQUIRE(mpi_algorithm("reduce_scatter_gather", call) == "binomial");
  call.operation = Operation::AllGather;
  REQUIRE_FALSE(mpi_algorithm("recursive_doubling", call).has_value());
}

TEST_CASE("Open MPI's code runs another algorithm where one cannot do the call",
          "[collectives][mpi]") {
  MpiCall call{.operation = Operation::AllReduce, .ranks = 8, .size = kib(1)};
  REQUIRE(mpi_algorithm("segmented_ring", call) == "ring");
  call.size = Bytes(28);  // Seven elements.
  REQUIRE(mpi_algorithm("segmented_ring", call) == "recursive_doubling");
  REQUIRE(mpi_algorithm("rabenseifner", call) == "basic_linear");
  call.operation = Operation::AllGather;
  REQUIRE(mpi_algorithm("recursive_doubling", call) == "recursive_doubling");
  REQUIRE_FALSE(mpi_algorithm("two_proc", call).has_value());
  call.ranks = 7;
  REQUIRE(mpi_algorithm("recursive_doubling", call) == "bruck");
  REQUIRE(mpi_algorithm("neighbor", call) == "ring");
  call.operation = Operation::Broadcast;
  REQUIRE_FALSE(mpi_algorithm("scatter_allgather_ring", call).has_value());
}

}  // namespace trainyard
