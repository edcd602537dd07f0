// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/doctor/doctor_log.h"

#include <string>

#include "sim/config_error.h"

namespace trainyard {
namespace {

std::string run_of(const std::string& operation, const std::string& rows,
                   const std::string& end = "# Avg bus bandwidth    : 1.0\n#\n") {
  return "# Collective test starting: " + operation +
         "_perf\n"
         "# nThread 1 nGpus 2 minBytes 1024 maxBytes 4096 step: 2(factor) warmup iters: 5 iters: "
         "20 "
         "agg iters: 1 validation: 1 graph: 0\n"
         "#  Rank  0 Group  0 Pid  7 on one device  0 [0x0f] NVIDIA A100-SXM4-40GB\n"
         "#  Rank  1 Group  0 Pid  7 on one device  1 [0x10] NVIDIA A100-SXM4-40GB\n"
         "#       size         count      type   redop    root     time   algbw   busbw #wrong\n" +
         rows + end;
}

const std::string kRows =
    "        1024           256     float     sum      -1    10.24    0.10    0.10      0\n"
    "        2048           512     float     sum      -1    20.48    0.10    0.10      0\n"
    "        4096          1024     float     sum      -1    40.96    0.10    0.10      0\n";

// The same of an operation with the factor 1/2 for two ranks.
const std::string kHalfRows =
    "        1024           256     float    none      -1    10.24    0.10    0.05      0\n"
    "        2048           512     float    none      -1    20.48    0.10    0.05      0\n"
    "        4096          1024     float    none      -1    40.96    0.10    0.05      0\n";

std::string refusal(const std::string& text, std::optional<Operation> operation = std::nullopt) {
  try {
    (void)parse_doctor_log(text, "a.log", operation);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

bool warns(const DoctorLog& log, const std::string& line) {
  for (const std::string& warning : log.warnings) {
    if (warning.find(line) != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("a log of several runs is read run by run") {
  const DoctorLog log =
      parse_doctor_log("mpirun said this\n" + run_of("all_reduce", kRows) +
                           "# Collective test concluded: all_reduce_perf\n" +
                           run_of("all_gather", kHalfRows) + run_of("alltoall", kHalfRows, ""),
                       "a.log", std::nullopt);
  REQUIRE(log.runs.size() == 3);
  REQUIRE(log.runs[0].operation == Operation::AllReduce);
  REQUIRE(log.runs[1].operation == Operation::AllGather);
  REQUIRE(log.runs[2].operation == Operation::AllToAll);
  REQUIRE(log.ranks == 2);
  REQUIRE(log.nodes == 1);
  REQUIRE(log.runs[1].gpus_per_process == 2);
  REQUIRE_FALSE(log.runs[1].table.cuda_graph);
  // The last one has no end.
  REQUIRE(warns(log, "a.log:27: the log has no \"Avg bus bandwidth\" line"));
  const std::vector<DoctorPoint> points = points_of(log.runs[2].table);
  REQUIRE(points.size() == 3);
  REQUIRE(points[2].size == kib(4));
  REQUIRE(points[2].time == nanoseconds(40'960));
}

TEST_CASE("a run that was cut off ends where the next one begins") {
  const DoctorLog log = parse_doctor_log(
      run_of("all_reduce", kRows, "") + run_of("all_reduce", kRows), "a.log", std::nullopt);
  REQUIRE(log.runs.size() == 2);
  REQUIRE(log.runs[0].table.rows.size() == 3);
}

TEST_CASE("rows out of order and repeated ones are taken by their sizes") {
  const std::string again =
      "        1024           256     float     sum      -1    12.24    0.08    0.08      0\n"
      "        1024           256     float     sum      -1    14.24    0.07    0.07      0\n";
  const DoctorLog log =
      parse_doctor_log(run_of("all_reduce", kRows + again), "a.log", std::nullopt);
  REQUIRE(warns(log, "a.log:9: 1024 B after 4096 B: rows are out of order"));
  const std::vector<DoctorPoint> points = points_of(log.runs[0].table);
  REQUIRE(points.size() == 3);
  REQUIRE(points[0].time == nanoseconds(12'240));  // The median.
}

TEST_CASE("busbw over algbw decides about the operation and the ranks") {
  const std::string more_ranks =
      "a.log:5: expected all_gather of 11 ranks or more (busbw / algbw is 1.01), found all_gather "
      "of 2 ranks";
  REQUIRE(refusal(run_of("my_own", kRows), Operation::AllGather) == more_ranks);
  REQUIRE(refusal(run_of("all_gather", kRows)) == more_ranks);
  std::string unlisted = run_of("all_reduce", kRows);
  unlisted.erase(unlisted.find("#  Rank  0"),
                 unlisted.find("#       size") - unlisted.find("#  Rank  0"));
  const DoctorLog log = parse_doctor_log(unlisted, "a.log", std::nullopt);
  REQUIRE(log.ranks == 2);
  REQUIRE(warns(log, "a.log:3: 2 ranks, as busbw / algbw says"));
}

TEST_CASE("output that measures links is sent to the command that compares it") {
  REQUIRE(refusal("RDMA_Write BW Test\n#bytes #iterations BW peak[MB/sec] BW average[MB/sec]\n"
                  "65536 5000 11703.71 11690.04\n") ==
          "a.log: expected a collective, found perftest, which measures links: trainyard calibrate "
          "a.log --cluster NAME holds it against the simulator");
  REQUIRE(
      refusal("# OSU MPI-CUDA Allreduce Latency Test v7\n# Size Avg Latency(us)\n8 9.5\n").empty());
}

TEST_CASE("busbw over algbw tells the operation where it is that of one alone") {
  const std::string header =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n";
  const DoctorLog log = parse_doctor_log(
      header +
          "  1073741824     268435456     float     sum      -1   3998.1  268.57  470.00      0\n",
      "a.log", std::nullopt);
  REQUIRE(log.runs.at(0).operation == Operation::AllReduce);
  REQUIRE(log.ranks == 8);
  REQUIRE(warns(log, "a.log:1: all_reduce, as busbw / algbw says"));
  // Of 0.875 three operations remain.
  REQUIRE(refusal(header + "  1073741824     268435456     float    none      -1   3998.1  268.57"
                           "  235.00      0\n")
              .find("expected a log that says its operation, or --op") != std::string::npos);
}

TEST_CASE("what is wrong with a log is one line with its place") {
  const std::string torn =
      "        8192          2048     float     sum      -1    40.96    0.10\n";
  REQUIRE(refusal("x\n" + run_of("all_reduce", kRows) + run_of("all_gather", kHalfRows + torn))
              .starts_with("a.log:20: expected 9 values as in the header on line 16"));
  REQUIRE(refusal(run_of("all_reduce", "")) ==
          "a.log:5: expected rows below the table's header, found none");
  REQUIRE(refusal(run_of("all_reduce", kRows), Operation::AllGather) ==
          "--op: expected all_reduce, as in a.log:5, found \"all_gather\"");
  REQUIRE(refusal(run_of("my_own", kRows)) ==
          "a.log:5: expected a log that says its operation, or --op, found neither");
  REQUIRE(refusal(run_of("my_own", kHalfRows), Operation::AllGather).empty());
  REQUIRE(refusal("hello\n").starts_with("a.log: expected nccl-tests output"));
  const std::string of_three =
      "        1024           256     float     sum      -1    10.24    0.10    0.13      0\n";
  std::string more = run_of("all_reduce", of_three);
  more.insert(more.find("#       size"),
              "#  Rank  2 Group  0 Pid  8 on one device  2 [0x11] NVIDIA A100-SXM4-40GB\n");
  REQUIRE(refusal(run_of("all_reduce", kRows) + more) ==
          "a.log:16: expected a run of 2 ranks, as those before, found 3");
}

}  // namespace trainyard
