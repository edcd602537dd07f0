// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/measured/log_context.h"

#include <string>
#include <vector>

namespace trainyard {
namespace {

MeasuredTable context_of(const std::vector<std::string>& lines) {
  LogContext context;
  for (const std::string& line : lines) {
    context.read(line);
  }
  return context.described();
}

}  // namespace

TEST_CASE("lines around a table say the same with and without their #") {
  for (const std::string mark : {"# ", " ", "[1,0]<stdout>:# "}) {
    INFO(mark);
    const MeasuredTable table = context_of(
        {mark + "Collective test starting: all_gather_perf",
         mark + "nThread 1 nGpus 2 minBytes 8 maxBytes 16777216 step: 2(factor) graph: 3",
         mark + " Rank  0 Group  0 Pid    127 on one device  0 [0x00] NVIDIA A10G",
         mark + " Rank  1 Group  0 Pid    127 on one device  1 [0x01] NVIDIA A10G",
         mark + "Out of bounds values : 0 OK", mark + "Avg bus bandwidth    : 1.5"});
    REQUIRE(table.operation == Operation::AllGather);
    REQUIRE(table.ranks == 2);
    REQUIRE(table.nodes == 1);
    REQUIRE(table.gpus_per_process == 2);
    REQUIRE(table.cuda_graph);
    REQUIRE(table.system == "NVIDIA A10G");
    REQUIRE(table.remarks.empty());
  }
}

TEST_CASE("lines of rccl-tests are read, of which devices have no group") {
  const MeasuredTable table =
      context_of({"# nThread 1 nGpus 1 minBytes 8 maxBytes 64 graph: 0", "rccl-tests: Version 4f3",
                  "#   Rank  0 Pid  31 on one device  0 [0000:05:00.0] AMD Instinct MI300X",
                  "#   Rank  1 Pid  32 on two device  0 [0000:05:00.0] AMD Instinct MI300X",
                  "#                    in-place          ", "# Avg bus bandwidth    : 1.5"});
  REQUIRE(table.source == "rccl-tests log");
  REQUIRE(table.ranks == 2);
  REQUIRE(table.nodes == 2);
  REQUIRE(table.system == "AMD Instinct MI300X");
  REQUIRE(table.remarks.back() == "the log has in-place times alone");
}

TEST_CASE("prose is no device") {
  REQUIRE(listed_rank("#  Rank  7 Group  0 Pid 3 on one device 7 [0x0f] GPU") == 7);
  REQUIRE_FALSE(listed_rank("Rank 7 is slow on this node").has_value());
  REQUIRE_FALSE(listed_rank("").has_value());
  REQUIRE(program_operation("/opt/build/reduce_scatter_perf_mpi") == Operation::ReduceScatter);
  REQUIRE_FALSE(program_operation("my_perf").has_value());
}

}  // namespace trainyard
