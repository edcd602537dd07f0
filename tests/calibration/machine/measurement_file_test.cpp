// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/machine/measurement_file.h"

#include <random>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/calibration_logs.h"
#include "support/case_files.h"
#include "support/damage.h"
#include "support/effort.h"

namespace trainyard {
namespace {

std::string sound_log() {
  std::vector<LogTime> times;
  for (int exponent = 10; exponent <= 26; ++exponent) {
    const Bytes size(std::int64_t{1} << exponent);
    times.push_back({size, 10.0 + static_cast<double>(size.count()) / 2e5});
  }
  return log_text(Operation::AllReduce, 8, times);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string refusal_of(const std::string& text) {
  try {
    (void)read_measurements(text, "a.log");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a file of measurements is known by what it holds") {
  const MeasurementFile log = read_measurements(sound_log(), "a.log");
  REQUIRE(log.kind == "nccl-tests");
  REQUIRE(log.warnings.empty());
  REQUIRE(log.tables.at(0).table.rows.size() == 17);
  REQUIRE(log.tables.at(0).table.gpus_per_process == 1);
  REQUIRE(log.tables.at(0).table.rows[0].line == 15);
  REQUIRE(read_measurements(kTableHead + kTableRows, "t.yaml").kind == "YAML table");
  const MeasurementFile links = read_measurements(
      "RDMA_Write BW Test\n#bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n"
      "65536 5000 11703.71 11690.04 0.187\n",
      "l.txt");
  REQUIRE(links.kind == "perftest");
  REQUIRE(links.links->values.size() == 1);
  REQUIRE(refusal_of("{\"format\": \"trainyard-measurements\"") ==
          "a.log:1:36: expected JSON, found the end of the text");
  REQUIRE(refusal_of("hello\n").find("a.log: expected output of nccl-tests") == 0);
}

TEST_CASE("damage in a log costs the rows that it is in, and a line each") {
  const std::string torn = replaced(sound_log(), "     float     sum      -1    10.02", " 10.02");
  const MeasurementFile file = read_measurements(torn, "a.log");
  REQUIRE(file.tables.at(0).table.rows.size() == 16);
  REQUIRE(file.warnings.size() == 1);
  REQUIRE(file.warnings[0].find("a.log:17: expected 9 values as in the header on line 14") == 0);
  // Both runs of a log count, and what is torn in one costs no more than itself.
  const MeasurementFile both = read_measurements(torn + sound_log(), "a.log");
  REQUIRE(both.tables.size() == 2);
  REQUIRE(both.tables[0].table.rows.size() == 16);
  REQUIRE(both.tables[1].table.rows.size() == 17);
  REQUIRE(both.warnings.size() == 1);
  const std::string cut = sound_log().substr(0, sound_log().find("# Out of bounds") - 30);
  const MeasurementFile shorter = read_measurements(cut, "a.log");
  REQUIRE(shorter.tables.at(0).table.rows.size() == 16);
  REQUIRE(shorter.warnings.size() == 2);
}

TEST_CASE("the same rows in two files count once") {
  std::vector<MeasurementFile> files{read_measurements(sound_log(), "a.log"),
                                     read_measurements(sound_log(), "b.log")};
  drop_copies(files);
  REQUIRE(files[0].tables.size() == 1);
  REQUIRE(files[1].tables.empty());
  std::vector<MeasurementFile> one{read_measurements(sound_log() + sound_log(), "a.log")};
  REQUIRE(one[0].tables.size() == 2);
  drop_copies(one);
  REQUIRE(one[0].tables.size() == 1);
  REQUIRE(files[1].warnings ==
          std::vector<std::string>{"b.log: left out: the same rows as in a.log"});
}

TEST_CASE("a damaged log is read with warnings or refused in one line, never misread", "[damage]") {
  std::mt19937_64 engine(11);
  for (std::uint64_t trial = 0; trial < cases(500); ++trial) {
    const std::string text = damaged(sound_log(), "0123456789. #\n", engine);
    INFO("trial " << trial);
    try {
      const MeasurementFile file = read_measurements(text, "a.log");
      REQUIRE(!file.tables.at(0).table.rows.empty());
      for (const MeasuredRow& row : file.tables.at(0).table.rows) {
        REQUIRE(row.time > SimTime());
      }
    } catch (const ConfigError& error) {
      REQUIRE(std::string(error.what()).find('\n') == std::string::npos);
    }
  }
}

}  // namespace trainyard
