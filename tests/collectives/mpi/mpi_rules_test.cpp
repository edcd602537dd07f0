// SPDX-License-Identifier: Apache-2.0
// The rules are those of Open MPI and MPICH: bounds belong to the greater side, and decide by what
// the library decides by. Single cells are looked up here; all of them were compared with the C
// functions, or with MPICH's own table and search.
#include "support/catch.h"

#include "collectives/mpi/mpi_rules.h"

#include "sim/config.h"
#include "sim/config_error.h"
#include "sim/fields.h"
#include "support/mpi.h"

namespace trainyard {
namespace {

std::string error_of(const std::string& bands) {
  ConfigDocument document = ConfigDocument::parse(
      "source: s\nlibrary: mpich\nrelease: r\nrules:\n  reduce:\n    function: f\n    bytes: "
      "whole\n"
      "    algorithms: [a, b]\n    bands: " +
          bands + "\n",
      "rules.yaml");
  MpiRules rules;
  try {
    read_fields(document.root(), rules, mpi_rule_fields);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a bound of sizes or ranks belongs to what is above it", "[collectives][mpi]") {
  const MpiRules rules = shipped_mpi_rules();
  const auto all_reduce = [&](int ranks, Bytes size) {
    return rules.choose(Operation::AllReduce, ranks, size);
  };
  REQUIRE(all_reduce(2, Bytes(4)) == "ring");
  REQUIRE(all_reduce(2, Bytes(8)) == "recursive_doubling");
  REQUIRE(all_reduce(3, Bytes(65'535)) == "ring");
  REQUIRE(all_reduce(3, Bytes(65'536)) == "segmented_ring");
  REQUIRE(all_reduce(4, Bytes(65'536)) == "rabenseifner");
  REQUIRE(all_reduce(5'000, kib(31)) == "recursive_doubling");
  REQUIRE(rules.choose(Operation::AllGather, 2, mib(64)) == "two_proc");
  REQUIRE(rules.choose(Operation::Broadcast, 100, mib(1)) == "knomial");
}

TEST_CASE("blocks decide where each rank has its own, but for reduce_scatter",
          "[collectives][mpi]") {
  const MpiRules rules = shipped_mpi_rules();
  // Two ranks: pairwise from 4 KiB of a block on, two_proc below.
  REQUIRE(rules.choose(Operation::AllToAll, 2, kib(8)) == "pairwise");
  REQUIRE(rules.choose(Operation::AllToAll, 2, kib(4)) == "two_proc");
  REQUIRE(rules.choose(Operation::ReduceScatter, 2, kib(64)) == "butterfly");
  REQUIRE(rules.choose(Operation::Gather, 4, mib(1)) == "linear_sync");
  REQUIRE(rules.rule(Operation::Barrier) == nullptr);
}

TEST_CASE("MPICH decides by powers of two", "[collectives][mpi]") {
  const MpiRules rules = shipped_mpi_rules("mpich-4.1");
  const auto broadcast = [&](int ranks, Bytes size) {
    return rules.choose(Operation::Broadcast, ranks, size);
  };
  REQUIRE(broadcast(7, mib(1)) == "binomial");
  REQUIRE(broadcast(8, Bytes(12'288)) == "binomial");
  REQUIRE(broadcast(8, Bytes(12'289)) == "scatter_recursive_doubling_allgather");
  REQUIRE(broadcast(8, kib(512)) == "scatter_recursive_doubling_allgather");
  REQUIRE(broadcast(8, kib(512) + Bytes(1)) == "scatter_ring_allgather");
  REQUIRE(broadcast(9, Bytes(12'289)) == "scatter_ring_allgather");
  REQUIRE(rules.choose(Operation::AllGather, 16, kib(512) - Bytes(1)) == "recursive_doubling");
  REQUIRE(rules.choose(Operation::AllGather, 17, kib(80) - Bytes(1)) == "brucks");
  REQUIRE(rules.choose(Operation::AllGather, 17, kib(80)) == "ring");
  // Eight ranks are below eight where the bound is left for the call.
  REQUIRE(rules.choose(Operation::AllToAll, 8, Bytes(64)) == "scattered");
  REQUIRE(rules.choose(Operation::AllToAll, 9, Bytes(9 * 256)) == "brucks");
}

TEST_CASE("rules that do not say one algorithm for each size are refused", "[collectives][mpi]") {
  REQUIRE(error_of("[{use: [a]}]").empty());
  REQUIRE(
      error_of("[{sizes_below: [1 KiB], use: [a]}]").find("2 algorithms, one more than sizes") !=
      std::string::npos);
  REQUIRE(error_of("[{sizes_below: [2 KiB, 1 KiB], use: [a, b, a]}]").find("sizes that rise") !=
          std::string::npos);
  REQUIRE(error_of("[{ranks_below: 4, use: [a]}]").find("the last without a bound") !=
          std::string::npos);
  REQUIRE(error_of("[{powers_of_two: true, use: [a]}]").find("the last without a bound") !=
          std::string::npos);
  REQUIRE(error_of("[{use: [c]}]").find("algorithms of the list above, found") !=
          std::string::npos);
}

}  // namespace trainyard
