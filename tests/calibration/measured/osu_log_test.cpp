// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/measured/osu_log.h"

#include <string>

#include "sim/config_error.h"

namespace trainyard {
namespace {

const std::string kOsuGather =
    "mpirun said this\n"
    "# OSU MPI-CUDA Allgather Latency Test v7.3\n"
    "# Datatype: MPI_CHAR.\n"
    "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
    "1024                   20.00             19.00             21.00        1000\n"
    "1048576               412.50            409.12            415.33         100\n";

std::string osu_refusal(const std::string& text) {
  try {
    (void)parse_osu_log(text, "osu.log");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a collective of OSU has times of the sizes of one rank or of the whole") {
  REQUIRE(is_osu_log(kOsuGather));
  MeasuredTable table = parse_measurement(kOsuGather, "osu.log");
  REQUIRE(table.operation == Operation::AllGather);
  REQUIRE_FALSE(table.ranks.has_value());
  REQUIRE(table.rows.size() == 2);
  REQUIRE(table.rows[1].line == 6);
  REQUIRE(table.rows[1].time == nanoseconds(412'500));
  REQUIRE(table.remarks.front() == "times of MPI (OSU Micro-Benchmarks), not of NCCL");
  // Eight ranks gather eight messages.
  take_whole_sizes(table, 8);
  REQUIRE(table.rows[1].size == mib(8));
  take_whole_sizes(table, 8);
  REQUIRE(table.rows[1].size == mib(8));

  MeasuredTable reduced = parse_osu_log(
      "# OSU MPI-CUDA Allreduce Latency Test v5.9\n# Size       Avg Latency(us)\n4      1.98\n",
      "osu.log");
  take_whole_sizes(reduced, 8);
  REQUIRE(reduced.operation == Operation::AllReduce);
  REQUIRE(reduced.rows[0].size == Bytes(4));
  REQUIRE(parse_osu_log("# OSU NCCL All-to-All Personalized Exchange Latency Test v7\n"
                        "# Size Avg Latency(us)\n8 3.0\n",
                        "osu.log")
              .operation == Operation::AllToAll);
}

TEST_CASE("what is wrong with a log of OSU is one line with its place") {
  std::string text = kOsuGather;
  text.replace(text.find("-CUDA"), 5, "");
  REQUIRE(osu_refusal(text) ==
          "osu.log:2: expected buffers on GPUs (-d cuda), found \"# OSU MPI Allgather Latency Test "
          "v7.3\"");
  REQUIRE(osu_refusal(kOsuGather + "2097152   8").starts_with("osu.log:7: expected a size and a"));
  REQUIRE(osu_refusal(kOsuGather + kOsuGather) ==
          "osu.log:8: expected one run per file, found a second one");
  REQUIRE(osu_refusal("# OSU MPI-CUDA Reduce Latency Test v7\n") ==
          "osu.log:1: expected rows below a header with Avg Latency(us), found none");
  REQUIRE_FALSE(is_osu_log("# OSU MPI-CUDA Latency Test v7.3\n# Size Latency (us)\n1 2\n"));
}

}  // namespace trainyard
