// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/tuning/tuner_csv.h"
#include "sim/config_error.h"

namespace trainyard::nccl {
namespace {

constexpr const char* kTable =
    "# a comment\n"
    "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,"
    "regBuff\n"
    "\n"
    "allreduce,0,65536,tree,ll,2,2,16,-1,-1\r\n"
    "allreduce,0,65536,collnet_direct,simple,-1,-1,-1,4,1\n"
    "  allgather , 1024 , 4294967296 , nvls_tree , ll128 , -1 , -1 , -1 # behind\n";

TEST_CASE("rows of the example tuner plugin are read", "[nccl][tuner]") {
  const TunerTable table = TunerTable::parse(kTable, "tuner.csv");
  REQUIRE(table.rows().size() == 3);
  const TunerRow& first = table.rows()[0];
  REQUIRE(first.function == Function::AllReduce);
  REQUIRE(first.algorithm == Algorithm::Tree);
  REQUIRE(first.protocol == Protocol::LL);
  REQUIRE(first.channels == 2);
  REQUIRE(first.nodes == 2);
  REQUIRE(first.ranks == 16);
  REQUIRE_FALSE(first.operations);
  REQUIRE(first.place == "tuner.csv:4");
  REQUIRE(table.rows()[1].algorithm == Algorithm::CollNetDirect);
  REQUIRE(table.rows()[1].operations == 4);
  REQUIRE(table.rows()[1].registered == true);
  REQUIRE(table.rows()[2].algorithm == Algorithm::NvlsTree);
  REQUIRE(table.rows()[2].max_bytes == std::int64_t{1} << 32);
}

TEST_CASE("the first row that fits in all columns is found", "[nccl][tuner]") {
  const TunerTable table = TunerTable::parse(kTable, "tuner.csv");
  Communicator communicator;
  communicator.nodes = 2;
  communicator.ranks = 16;
  const auto find = [&](Bytes bytes, int operations) {
    return table.find(communicator, Function::AllReduce, bytes, operations);
  };
  REQUIRE(find(kib(64), 1) == table.rows().data());
  REQUIRE(find(Bytes(65'537), 1) == nullptr);
  communicator.ranks = 8;
  REQUIRE(find(kib(64), 1) == nullptr);
  REQUIRE(find(kib(64), 4) == nullptr);  // For registered buffers alone.
}

TEST_CASE("mistakes in the table have file, line and column", "[nccl][tuner]") {
  const auto parse = [](const char* text) { return TunerTable::parse(text, "t.csv"); };
  REQUIRE_THROWS_WITH(parse(""), "t.csv: expected at least one row, found none");
  REQUIRE_THROWS_WITH(parse("\nallreduce,0,1"), "t.csv:2: expected 8 to 10 columns, found 3");
  REQUIRE_THROWS_WITH(parse("alltoall,0,1,ring,ll,-1,-1,-1"),
                      "t.csv:1: collective: expected broadcast, reduce, allgather, reducescatter "
                      "or allreduce, found \"alltoall\"");
  REQUIRE_THROWS_WITH(parse("allreduce,9,1,ring,ll,-1,-1,-1"),
                      "t.csv:1: max_bytes: expected at least min_bytes, found \"1\"");
  REQUIRE_THROWS_WITH(parse("allreduce,0,1,rings,ll,-1,-1,-1"),
                      "t.csv:1: algorithm: expected tree, ring, collnet_direct, collnet_chain, "
                      "nvls, nvls_tree or pat, found \"rings\"");
  REQUIRE_THROWS_WITH(parse("allreduce,0,1,ring,ll,65,-1,-1"),
                      "t.csv:1: channels: expected a whole number from 1 to 64, found \"65\"");
  for (const char* const text :
       {"allreduce,x,1,ring,ll,-1,-1,-1", "allreduce,0,1,ring,ll256,-1,-1,-1",
        "allreduce,-5,1,ring,ll,-1,-1,-1", "allreduce,0,1,ring,ll,-1,-1,-1,-1,2",
        "allreduce,0,1,ring,ll,-1,-1,-1,-1,-1,7", "allreduce,0,1,ring,ll,,-1,-1"}) {
    REQUIRE_THROWS_AS(parse(text), ConfigError);
  }
  REQUIRE_THROWS_AS(TunerTable::load("/no/such/file.csv"), ConfigError);
}

}  // namespace
}  // namespace trainyard::nccl
