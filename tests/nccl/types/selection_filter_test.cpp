// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <string>

#include "nccl/types/selection_filter.h"
#include "sim/config_error.h"

namespace trainyard::nccl {
namespace {

TEST_CASE("without a list everything is allowed and nothing is forced", "[nccl][environment]") {
  const SelectionFilter filter;
  for (const Function function : kFunctions) {
    for (const Algorithm algorithm : kAlgorithms) {
      REQUIRE(filter.allows(function, algorithm));
    }
    for (const Protocol protocol : kProtocols) {
      REQUIRE(filter.allows(function, protocol));
      REQUIRE_FALSE(filter.forces(function, protocol));
    }
  }
  REQUIRE(filter.text().empty());
}

TEST_CASE("a list without a function is for all, one with a function replaces it",
          "[nccl][environment]") {
  SelectionFilter filter;
  filter.set_algorithms("ring,collnetdirect;allreduce:tree,NVLS;Broadcast:^Tree");
  REQUIRE(filter.allows(Function::AllGather, Algorithm::Ring));
  REQUIRE_FALSE(filter.allows(Function::AllGather, Algorithm::Pat));
  REQUIRE(filter.allows(Function::AllReduce, Algorithm::Tree));
  REQUIRE_FALSE(filter.allows(Function::AllReduce, Algorithm::Ring));
  REQUIRE_FALSE(filter.allows(Function::Broadcast, Algorithm::Tree));
  REQUIRE(filter.allows(Function::Broadcast, Algorithm::Pat));
}

TEST_CASE("functions that no list names keep everything", "[nccl][environment]") {
  SelectionFilter filter;
  filter.set_algorithms("AllReduce:Tree");
  REQUIRE_FALSE(filter.allows(Function::AllReduce, Algorithm::Ring));
  REQUIRE(filter.allows(Function::ReduceScatter, Algorithm::Ring));
}

TEST_CASE("a list of protocols forces what it allows, also by leaving others out",
          "[nccl][environment]") {
  SelectionFilter filter;
  filter.set_protocols("^LL128;AllReduce:LL128");
  REQUIRE_FALSE(filter.allows(Function::AllGather, Protocol::LL128));
  REQUIRE(filter.forces(Function::AllGather, Protocol::Simple));
  REQUIRE(filter.forces(Function::AllReduce, Protocol::LL128));
  REQUIRE_FALSE(filter.allows(Function::AllReduce, Protocol::LL));
  REQUIRE(filter.text() == "NCCL_PROTO=^LL128;AllReduce:LL128");
}

TEST_CASE("what is no name, no function or a second list for all is refused",
          "[nccl][environment]") {
  SelectionFilter filter;
  REQUIRE_THROWS_WITH(filter.set_algorithms("Rings"),
                      "NCCL_ALGO: expected names out of Tree, Ring, CollNetDirect, CollNetChain, "
                      "NVLS, NVLSTree, PAT, found \"Rings\"");
  REQUIRE_THROWS_WITH(filter.set_protocols(""),
                      "NCCL_PROTO: expected names out of LL, LL128, Simple, found \"\"");
  REQUIRE_THROWS_WITH(filter.set_protocols("LL;Simple"),
                      "NCCL_PROTO: expected FUNCTION:LIST behind the first \";\", found "
                      "\"Simple\"");
  REQUIRE_THROWS_WITH(filter.set_protocols("AllToAll:LL"),
                      "NCCL_PROTO: expected a function out of Broadcast, Reduce, AllGather, "
                      "ReduceScatter, AllReduce, found \"AllToAll\"");
  for (const char* const text : {"^", "Ring,", ",Ring", "Ring;", "AllReduce:", ":Ring", "^^Ring"}) {
    REQUIRE_THROWS_AS(filter.set_algorithms(text), ConfigError);
  }
}

}  // namespace
}  // namespace trainyard::nccl
