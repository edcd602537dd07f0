// SPDX-License-Identifier: Apache-2.0
// Real-style logs of several versions: files in data/, and short texts for what varies.
#include "support/catch.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "calibration/measured/measurement.h"
#include "calibration/measured/nccl_log.h"
#include "sim/config_error.h"
#include "support/paths.h"

namespace trainyard {
namespace {

using namespace literals;

const std::string kData = source_dir().string() + "/tests/calibration/data/";

const std::string kHeader =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong\n";
const std::string kRow =
    "     1048576        262144     float     sum      -1    93.25   11.24   21.08      0\n";

MeasuredTable parse_log(const std::string& text) {
  return parse_nccl_log(text, "run.log");
}

bool has_remark(const MeasuredTable& table, const std::string& remark) {
  for (const std::string& text : table.remarks) {
    if (text == remark) {
      return true;
    }
  }
  return false;
}

TEST_CASE("a single-node log of nccl-tests 2.13 is read") {
  const MeasuredTable table = load_measurement(kData + "all_reduce-1x8.log");
  REQUIRE(table.name == "all_reduce-1x8");
  REQUIRE(table.source == "nccl-tests log");
  REQUIRE(table.operation == Operation::AllReduce);
  REQUIRE(table.ranks == 8);
  REQUIRE(table.nodes == 1);
  REQUIRE(table.gpus_per_node == 8);
  REQUIRE(table.system == "NVIDIA A100-SXM4-80GB");
  REQUIRE(table.remarks.empty());
  REQUIRE(table.rows.size() == 5);
  REQUIRE(table.rows[0].size == 8_B);
  REQUIRE(table.rows[0].time == 40120_ns);
  REQUIRE(table.rows[0].in_place->time == 38850_ns);
  REQUIRE(table.rows[4].size == 4_GiB);
  REQUIRE(table.rows[4].time == 32336_us);
  REQUIRE(table.rows[4].algbw_gbps == 132.82);
  REQUIRE(table.rows[4].busbw_gbps == 232.44);
  REQUIRE(table.rows[4].in_place->busbw_gbps == 231.59);
}

TEST_CASE("a log under mpirun is read through its prefixes and other programs' lines") {
  const MeasuredTable table = load_measurement(kData + "all_reduce-2x8-mpirun.log");
  REQUIRE(table.source == "nccl-tests log (nccl-tests 2.17.6)");
  REQUIRE(table.operation == Operation::AllReduce);
  REQUIRE(table.ranks == 16);
  REQUIRE(table.nodes == 2);
  REQUIRE(table.gpus_per_node == 8);
  REQUIRE(table.remarks.empty());
  REQUIRE(table.rows.size() == 4);
  REQUIRE(table.rows[2].time == 4497400_ns);
  REQUIRE(table.rows[3].busbw_gbps == 466.73);
}

TEST_CASE("a log that ends within a row is an error with the line") {
  REQUIRE_THROWS_WITH(load_measurement(kData + "all_reduce-1x8-truncated.log"),
                      kData +
                          "all_reduce-1x8-truncated.log:18: expected 13 values as in the header on "
                          "line 14, found 8 (a torn row; NCCL_DEBUG_FILE keeps other output out of "
                          "the table)");
}

TEST_CASE("other headers and prefixes are understood") {
  SECTION("all_gather of an old version: no redop, no root, res") {
    const MeasuredTable table = parse_log(
        "#      bytes             N    type     time  algbw  busbw      res     time  algbw  "
        "busbw\n"
        "     1048576        262144   float   93.250  11.24  10.54    0e+00   93.250  11.24  "
        "10.54\n");
    REQUIRE(table.rows.size() == 1);
    REQUIRE(table.rows[0].in_place->busbw_gbps == 10.54);
  }
  SECTION("a compact table in place of the whole one") {
    const MeasuredTable table =
        parse_log("#   size  time  algbw  busbw\n 17179869184 387603 44.32 22.16\n");
    REQUIRE(table.rows[0].size == 16_GiB);
    REQUIRE_FALSE(table.rows[0].in_place.has_value());
  }
  SECTION("srun --label, and the prefix of another rank") {
    const MeasuredTable table = parse_log(" 0: " + kHeader + " 0: " + kRow + "12: " + kRow);
    REQUIRE(table.rows.size() == 2);
  }
  SECTION("a time stamp and a rank, which differ from line to line") {
    const std::string before = "2026-01-28T14:50:";
    const MeasuredTable table = parse_log(before + "17.20Z (head, rank=0, pid=3808) " + kHeader +
                                          before + "18.1Z (head, rank=0, pid=3808) " + kRow);
    REQUIRE(table.rows.size() == 1);
  }
  SECTION("indentation and carriage returns") {
    const MeasuredTable table = parse_log("    " + kHeader.substr(0, kHeader.size() - 1) +
                                          "\r\n    " + kRow.substr(0, kRow.size() - 1) + "\r\n");
    REQUIRE(table.rows.size() == 1);
  }
  SECTION("N/A in place") {
    const MeasuredTable table = parse_log(
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
        "  1048576 262144 float none -1 93.25 11.24 11.24 N/A N/A N/A N/A N/A\n");
    REQUIRE_FALSE(table.rows[0].in_place.has_value());
  }
}

TEST_CASE("lines of other programs within the table are not rows") {
  const MeasuredTable table =
      parse_log(kHeader + "#        (B)    (elements)   (us)\n" + kRow +
                "host1:123:456 [0] NCCL INFO Connected all rings\n3 warnings generated.\n\n" +
                "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 21.08\n42 7\n");
  REQUIRE(table.rows.size() == 1);
}

TEST_CASE("the operation is taken from the program's name where the log has one") {
  const auto operation = [](const std::string& line) {
    return parse_log(line + "\n" + kHeader + kRow).operation;
  };
  REQUIRE(operation("# Collective test starting: alltoall_perf") == Operation::AllToAll);
  REQUIRE(operation("# Collective test starting: sendrecv_perf") == Operation::SendReceive);
  REQUIRE(operation("+ mpirun -np 16 build/reduce_scatter_perf -b 8") == Operation::ReduceScatter);
  REQUIRE(operation("+ ./reduce_perf -b 8") == Operation::Reduce);
  REQUIRE(operation("make all_reduce_perf all_gather_perf") == std::nullopt);
  REQUIRE(operation("no program") == std::nullopt);
  REQUIRE(
      has_remark(parse_log(kHeader + kRow), "the log does not say which operation was measured"));
}

TEST_CASE("ranks are counted only where the device list allows it") {
  const auto device = [](const std::string& rank, const std::string& host) {
    return "#  Rank " + rank + " Group  0 Pid  1 on " + host + " device  0 [0x07] NVIDIA GPU\n";
  };
  SECTION("shortened by hand: the highest rank counts") {
    const MeasuredTable table = parse_log(device("0", "a") + device("15", "b") + kHeader + kRow);
    REQUIRE(table.ranks == 16);
    REQUIRE(table.nodes == std::nullopt);
    REQUIRE(has_remark(table, "the log lists 2 of 16 ranks"));
  }
  SECTION("programs built without MPI all say rank 0") {
    const MeasuredTable table = parse_log(device("0", "a") + device("0", "b") + kHeader + kRow);
    REQUIRE(table.ranks == 1);
    REQUIRE(has_remark(table,
                       "the log lists 2 devices but only 1 ranks: nccl-tests built without "
                       "MPI runs as separate programs"));
  }
  SECTION("several groups") {
    const MeasuredTable table =
        parse_log(device("0", "a") + "#  Rank  1 Group  1 Pid 1 on a device 1 [0x0f] NVIDIA GPU\n" +
                  kHeader + kRow);
    REQUIRE(table.ranks == std::nullopt);
  }
  SECTION("no list") {
    REQUIRE(has_remark(parse_log(kHeader + kRow), "the log does not say how many ranks took part"));
  }
  SECTION("nccl-tests before 2.11 prints no group") {
    const MeasuredTable table = parse_log(
        "#   Rank  0 Pid     26 on worker-0 device  0 [0x10] A100-SXM4-40GB\n" + kHeader + kRow);
    REQUIRE(table.ranks == 1);
    REQUIRE(table.system == "A100-SXM4-40GB");
  }
}

TEST_CASE("rows that say nothing or something wrong are remarked") {
  const MeasuredTable table = parse_log(
      kHeader +
      "           0             0     float     sum      -1     5.58    0.00    0.00      0\n" +
      "     1048576        262144     float     sum      -1    93.25   11.24   21.08      7\n" +
      "# Out of bounds values : 7 FAILED\n# Avg bus bandwidth    : 21.08\n");
  REQUIRE(table.rows.size() == 1);
  REQUIRE(has_remark(table, "1 rows of 0 bytes left out"));
  REQUIRE(has_remark(table, "rows report wrong results (#wrong), the first on line 3"));
  REQUIRE(has_remark(table, "nccl-tests reported wrong results (\"Out of bounds values\")"));
  REQUIRE(has_remark(parse_log(kHeader + kRow),
                     "the log has no \"Avg bus bandwidth\" line: the run may "
                     "not have finished"));
}

TEST_CASE("of a table with a column best the marked rows are taken") {
  const MeasuredTable table = parse_log(
      "# size time algbw busbw algorithm best\n"
      "  1024 10.00 0.10 0.18 ring -\n"
      "  1024 9.00 0.11 0.20 tree *\n");
  REQUIRE(table.rows.size() == 1);
  REQUIRE(table.rows[0].time == 9_us);
  REQUIRE(has_remark(table, "1 rows not marked best (\"*\") left out"));
}

TEST_CASE("logs that cannot be used are errors with the line") {
  const std::string end = "# Avg bus bandwidth    : 21.08\n";
  REQUIRE_THROWS_WITH(parse_log("\n" + kHeader),
                      "run.log:2: expected rows below the table's header, found none");
  REQUIRE_THROWS_WITH(parse_log(kHeader + kRow + kHeader + kRow),
                      "run.log:3: a second table starts here (the first is on line 1): expected "
                      "one run per file");
  REQUIRE_THROWS_WITH(parse_log(kHeader + kRow + end + kRow),
                      "run.log:4: a row after the end of the table: expected one run per file");
  REQUIRE_THROWS_WITH(
      parse_log(
          kHeader +
          "     1048576        262144     float     sum      -1    93.2x   11.24   21.08 0\n"),
      "run.log:2: time: expected a number, found \"93.2x\"");
  REQUIRE_THROWS_WITH(
      parse_log(kHeader +
                "     1048576        262144     float     sum      -1    0.00   11.24   21.08 0\n"),
      "run.log:2: expected a time, found neither a positive time nor a bandwidth to compute it "
      "from");
  REQUIRE_THROWS_WITH(
      parse_log(kHeader + "99999999999999999999 262144 float sum -1 93.25 11.24 21.08 0\n"),
      "run.log:2: expected a size in bytes, found \"99999999999999999999\"");
  REQUIRE_THROWS_AS(parse_log(kHeader + "     1048576\n"), ConfigError);
  REQUIRE_THROWS_AS(parse_log(kHeader + "     1048576        262144host1:1:2 [0] NCCL INFO x\n"),
                    ConfigError);
}

TEST_CASE("a log cut anywhere is read or refused, never misread") {
  std::ifstream stream(kData + "all_reduce-2x8-mpirun.log", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  const MeasuredTable whole = parse_log(text);
  for (std::size_t length = 0; length < text.size(); length += 3) {
    try {
      const MeasuredTable table = parse_log(text.substr(0, length));
      REQUIRE(table.rows.size() <= whole.rows.size());
    } catch (const ConfigError& error) {
      REQUIRE(std::string(error.what()).substr(0, 8) == "run.log:");
    }
  }
}

TEST_CASE("with a place for damage, a wrong row costs no more than itself") {
  std::vector<std::string> damage;
  const std::string torn = "     2097152        524288     float\n";
  const MeasuredTable table =
      parse_nccl_log(kHeader + torn + kRow + kHeader + kRow, "a.log", &damage);
  REQUIRE(table.rows.size() == 1);
  REQUIRE(table.rows[0].line == 3);
  REQUIRE(damage.size() == 2);
  REQUIRE(damage[0].find("a.log:2: expected 9 values") == 0);
  REQUIRE(damage[1].find("a.log:4: a second table starts here") == 0);
  REQUIRE_THROWS_AS(parse_nccl_log(kHeader + torn, "a.log", &damage), ConfigError);
}

TEST_CASE("a log says how many GPUs a process drives and whether graphs are replayed") {
  const MeasuredTable table =
      parse_log("# nThread 1 nGpus 8 minBytes 8 maxBytes 8 graph: 20\n" + kHeader + kRow);
  REQUIRE(table.gpus_per_process == 8);
  REQUIRE(table.cuda_graph);
  REQUIRE(!parse_log(kHeader + kRow).gpus_per_process.has_value());
}

TEST_CASE("programs that ran side by side are told from runs one after the other") {
  const std::string devices =
      "#   Rank  0 Pid 11 on one device  0 [0x00] V100\n"
      "#   Rank  1 Pid 11 on one device  1 [0x01] V100\n";
  const std::string end = "# Avg bus bandwidth    : 21.08\n";
  const auto why =
      why_separate(devices + devices + kHeader + kHeader + kRow + kRow + end + end, "run.log");
  REQUIRE(why.has_value());
  REQUIRE(
      why->starts_with("run.log:7: expected the rows of one run, found those of 2 programs, "
                       "each with 2 ranks of its own, side by side"));
  const std::string run = devices + kHeader + kRow + end;
  REQUIRE_FALSE(why_separate(run + run, "run.log").has_value());
  // The first run broke off before its table.
  REQUIRE_FALSE(why_separate(devices + run, "run.log").has_value());
  REQUIRE(split_runs(run + run).size() == 2);
  REQUIRE(split_runs(run + run)[1].header_line == 8);
}

TEST_CASE("busbw 0 on every row is said to be runs of one rank") {
  const std::string small =
      "           8             2     float     sum      -1     5.5    0.00    0.00 0\n";
  const std::string alone =
      "     1048576        262144     float     sum      -1    93.25   11.24    0.00      0\n";
  const auto why = why_separate(kHeader + small + alone + alone, "run.log");
  REQUIRE(why.has_value());
  REQUIRE(
      why->starts_with("run.log:2: expected a run of two ranks or more, found busbw 0 on every "
                       "row: each process ran alone, with one rank"));
  REQUIRE_FALSE(why_separate(kHeader + small + small, "run.log").has_value());
  REQUIRE_FALSE(why_separate(kHeader + small + kRow, "run.log").has_value());
}

TEST_CASE("only a whole header makes a log") {
  REQUIRE(is_nccl_log("x\n[1,0]<stdout>:" + kHeader));
  REQUIRE_FALSE(is_nccl_log(""));
  REQUIRE_FALSE(is_nccl_log("# size of the file\n"));
  REQUIRE_FALSE(is_nccl_log("size time algbw busbw\n"));
}

}  // namespace
}  // namespace trainyard
