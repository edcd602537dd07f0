// SPDX-License-Identifier: Apache-2.0
// The YAML form: what it gives, what it refuses, and that all shipped tables load.
#include "support/catch.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "calibration/measured/measurement.h"
#include "sim/config_error.h"
#include "support/paths.h"

namespace trainyard {
namespace {

using namespace literals;

const std::filesystem::path kRoot = source_dir();

const std::string kSource =
    "source: {title: \"A page\", url: null, repo_or_site: \"site\", date_if_known: \"2025\"}\n";
const std::string kSystem = "system: {name: \"A box\", nodes: 1, gpus_per_node: 8}\n";
const std::string kTest =
    "test: {op: \"all_reduce\", ranks: 8, in_place_or_out: \"out\", algo_proto: \"Ring\"}\n";
const std::string kRows =
    "rows:\n  - {bytes: 8388608, time_us: 91.10, algbw: 92.08, busbw: 161.14}\n";

MeasuredTable parse(const std::string& text) {
  return parse_measurement(text, "dir/table.yaml");
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string error_of(const std::string& text) {
  try {
    (void)parse(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::filesystem::path> validation_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "validation/nccl")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST_CASE("a YAML table is read") {
  const MeasuredTable table = parse(kSource + kSystem + kTest + kRows);
  REQUIRE(table.name == "table");
  REQUIRE(table.source == "A page, site, 2025");
  REQUIRE(table.system == "A box");
  REQUIRE(table.operation == Operation::AllReduce);
  REQUIRE(table.ranks == 8);
  REQUIRE(table.nodes == 1);
  REQUIRE(table.gpus_per_node == 8);
  REQUIRE(table.algorithm_protocol == "Ring");
  REQUIRE(table.rows.size() == 1);
  REQUIRE(table.rows[0].size == 8_MiB);
  REQUIRE(table.rows[0].time == 91100_ns);
  REQUIRE_FALSE(table.rows[0].in_place.has_value());
  REQUIRE(table.remarks.empty());
}

TEST_CASE("a null time is computed and remarked") {
  const MeasuredTable table =
      parse(kSource + kSystem + kTest +
            "rows:\n  - {bytes: 1000000000, time_us: null, algbw: null, busbw: 175}\n");
  REQUIRE(table.rows[0].time == 10_ms);
  REQUIRE(table.remarks.size() == 1);
}

TEST_CASE("what a YAML table may not hold is an error that says where") {
  const auto error = [](const std::string& rows) {
    return error_of(kSource + kSystem + kTest + rows);
  };
  REQUIRE(contains(error("rows: []\n"), "rows: expected at least one row, found none"));
  REQUIRE(contains(error("rows:\n  - {bytes: 8, time: 1}\n"), "table.yaml:5"));
  REQUIRE(contains(error("rows:\n  - {bytes: 8, time_us: 1, tiem: 1}\n"), "tiem"));
  REQUIRE(contains(error("rows:\n  - {bytes: 0, time_us: 1}\n"), "bytes"));
  REQUIRE(contains(error("rows:\n  - {bytes: 8, time_us: -1}\n"),
                   "time_us: expected a number of 0 or more, or null, found"));
  REQUIRE(
      contains(error("rows:\n  - {bytes: 8, time_us: null}\n"),
               "expected a time or a bandwidth, found neither a positive time nor a bandwidth"));
  REQUIRE(contains(error("rows:\n  - {bytes: 8, busbw: 0.00}\n"),
                   "table.yaml: expected a row with a time, found 1 of 1 rows: left out"));
  REQUIRE(contains(error_of(kSource + kSystem + kRows), "test"));
  REQUIRE(contains(error_of(kSource + kSystem + "test: {op: allreduce, ranks: 8}\n" + kRows),
                   "test.op: expected one of all_reduce, all_gather"));
  REQUIRE(contains(error_of(kSource + kSystem + "test: {op: all_reduce, ranks: 16}\n" + kRows),
                   "test.ranks: expected system.nodes x system.gpus_per_node = 8, found"));
  REQUIRE(contains(error_of("extra: 1\n" + kSource + kSystem + kTest + kRows), "extra"));
}

TEST_CASE("a file that is no measured table is an error") {
  REQUIRE(error_of("hello\n") ==
          "dir/table.yaml: expected nccl-tests output (a header line with size, time, algbw and "
          "busbw; or JSON), a collective of the OSU Micro-Benchmarks, or a YAML table (source, "
          "system, test, rows), found neither");
  REQUIRE(contains(error_of(""), "found neither"));
  REQUIRE_THROWS_WITH(load_measurement("no/such/file.log"),
                      "no/such/file.log: cannot be read: No such file or directory");
  REQUIRE_THROWS_WITH(load_measurement(kRoot),
                      kRoot.string() + ": expected a file, found a directory");
}

// Old nccl-tests: algbw of (n-1)/n of the size, sizes rounded to the ranks. Only bytes and times of
// them are used.
bool has_old_bandwidths(const MeasuredTable& table) {
  return table.name == "dgx2-1x12-v100-allgather" || table.name == "dgx2-1x12-v100-reducescatter" ||
         table.name == "rtx2080ti-1x2-nvlink-bridge-allgather";
}

TEST_CASE("every table in validation is read and consistent") {
  const std::vector<std::filesystem::path> files = validation_files();
  REQUIRE(files.size() >= 95);
  for (const std::filesystem::path& file : files) {
    CAPTURE(file.string());
    const MeasuredTable table = load_measurement(file);
    REQUIRE(table.name == file.stem().string());
    REQUIRE(!table.rows.empty());
    REQUIRE(!table.source.empty());
    if (has_old_bandwidths(table)) {
      continue;
    }
    for (const std::string& remark : table.remarks) {
      CAPTURE(remark);
      REQUIRE_FALSE(contains(remark, "does not agree"));
    }
    const double factor = bus_factor(table.operation.value(), table.ranks.value());
    for (const MeasuredRow& row : table.rows) {
      const double algbw = static_cast<double>(row.size.count()) / row.time.seconds() / 1e9;
      REQUIRE(std::abs(row.algbw_gbps - algbw) <= 0.01 + 0.01 * algbw);
      REQUIRE(std::abs(row.busbw_gbps - factor * row.algbw_gbps) <= 0.02);
    }
  }
}

TEST_CASE("a table of validation holds the numbers of its file") {
  const MeasuredTable table =
      load_measurement(kRoot / "validation" / "nccl" / "h100-1x8-nvswitch-alltoall.yaml");
  REQUIRE(table.operation == Operation::AllToAll);
  REQUIRE(table.rows.size() == 10);
  REQUIRE(table.rows.back().size == 16_GiB);
  REQUIRE(table.rows.back().time == 43193300_ns);
  REQUIRE(table.rows.back().busbw_gbps == 348.03);
  REQUIRE(table.rows.back().in_place->time == 43289400_ns);
}

}  // namespace
}  // namespace trainyard
