// SPDX-License-Identifier: Apache-2.0
// A machine whose constants the test knows, measured by the event model itself.
#include "support/catch.h"

#include "calibration/machine/profile_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "calibration/machine/measurement_file.h"
#include "nccl/timing/profile.h"
#include "sim/config.h"
#include "sim/random.h"
#include "support/calibration_logs.h"
#include "support/nccl_timing.h"
#include "support/synthetic_cases.h"

namespace trainyard {
namespace {

const std::map<std::string, double> kChanges{{"gpus.hopper.ll_cost", 1.3},
                                             {"gpus.hopper.simple_rate", 0.8},
                                             {"gpus.hopper.nvls.head_cost", 1.25},
                                             {"gpus.hopper.point_to_point_link", 0.9}};

std::vector<double> true_values() {
  std::vector<double> values;
  for (const ProfileConstant& constant : shipped_constants().all()) {
    const auto change = kChanges.find(constant.name);
    values.push_back(constant.in_file * (change == kChanges.end() ? 1.0 : change->second));
  }
  return values;
}

std::vector<Bytes> sizes_from(int min, int max) {
  std::vector<Bytes> sizes;
  for (int exponent = min; exponent <= max; exponent += 1) {
    sizes.emplace_back(std::int64_t{1} << exponent);
  }
  return sizes;
}

// Uniform within a factor of exp(1.7 * noise): as wide as a normal distribution of this deviation.
CalibrationRequest request_of(std::uint64_t seed, double noise) {
  const nccl::Profile truth = shipped_constants().profile(true_values());
  RandomStream stream(seed, "calibration");
  const auto factor = [&] { return std::exp((stream.uniform() - 0.5) * 2.0 * 1.732 * noise); };
  CalibrationRequest request;
  for (const Operation operation :
       {Operation::AllReduce, Operation::AllGather, Operation::Reduce, Operation::AllToAll}) {
    const std::string name = std::string(to_string(operation)) + ".log";
    const std::string text =
        log_text(operation, 8, model_times(truth, operation, 8, sizes_from(10, 27), factor));
    request.tables.push_back(read_measurements(text, name).tables.at(0));
  }
  request.cluster = kConfigsFolder / "clusters" / "dgx-h100.yaml";
  request.cluster_name = "dgx-h100";
  return request;
}

ProfileCalibration calibration_of(const CalibrationRequest& request) {
  return calibrate_profile(request, shipped_constants(), shipped_catalogue(), one_by_one);
}

CalibratedTable table_of(Operation operation, std::size_t rows) {
  CalibratedTable table{.file = "a", .operation = operation, .ranks = 8, .rows = {}};
  table.rows.resize(rows);
  return table;
}

}  // namespace

TEST_CASE("constants of a synthetic machine lie in their intervals, others stay", "[fit][long]") {
  std::size_t intervals = 0;
  std::size_t holding = 0;
  const std::vector<double> truth = true_values();
  for (std::uint64_t seed = 0; seed < 1; ++seed) {
    const ProfileCalibration result = calibration_of(request_of(seed, 0.02));
    for (std::size_t k = 0; k < truth.size(); ++k) {
      const CalibratedConstant& one = result.constants[k];
      if (one.mark == ConstantMark::Measured) {
        ++intervals;
        holding += one.low <= truth[k] && truth[k] <= one.high ? 1U : 0U;
      } else {
        REQUIRE(one.value == one.constant.in_file);
        REQUIRE(!one.reason.empty());
      }
    }
    const CalibrationError kept_out = error_of(result.tables, RowUse::KeptOut);
    REQUIRE(kept_out.rows > 20);
    REQUIRE(kept_out.median_fitted < 0.03);
    REQUIRE(kept_out.median_fitted < 0.6 * kept_out.median_shipped);
  }
  REQUIRE(intervals >= 6);
  REQUIRE(static_cast<double>(holding) >= 0.85 * static_cast<double>(intervals));
}

TEST_CASE("a calibrated profile is read as it is and says what it rests on", "[fit][long]") {
  CalibrationRequest request = request_of(1, 0.01);
  request.tables[0].table.rows[5].time = request.tables[0].table.rows[5].time * 3;
  const ProfileCalibration result = calibration_of(request);
  ConfigDocument document = ConfigDocument::parse(result.profile, "mine.yaml");
  const nccl::Profile profile = nccl::Profile::read(document);
  const double shipped = nccl::default_profile().gpus.at("hopper").ll_cost.seconds();
  REQUIRE(profile.gpus.at("hopper").ll_cost.seconds() == Approx(1.3 * shipped).epsilon(0.1));
  REQUIRE(profile.basis->rows.size() == 3);  // Reduce is kept out.
  REQUIRE(profile.basis->rows[0].operation == Operation::AllReduce);
  REQUIRE(profile.basis->rows[0].min == kib(1));
  REQUIRE(profile.basis->rows[0].max == mib(128));
  INFO(fmt::format("{}", fmt::join(result.warnings, "\n")));
  REQUIRE(result.warnings.size() == 1);
  REQUIRE(result.warnings[0].find("all_reduce.log:20: left out as an outlier: all_reduce of 32KiB "
                                  "in ") == 0);
}

TEST_CASE("which rows are kept out of a fit is a rule") {
  const std::vector<CalibratedTable> tables{
      table_of(Operation::AllReduce, 8), table_of(Operation::AllGather, 3),
      table_of(Operation::ReduceScatter, 2), table_of(Operation::AllToAll, 7)};
  const std::vector<std::vector<bool>> marks = kept_out_rows(tables);
  REQUIRE(marks[0] == std::vector<bool>{false, false, true, false, false, false, true, false});
  REQUIRE(marks[1] == std::vector<bool>{false, false, false});
  REQUIRE(marks[2] == std::vector<bool>{true, true});
  REQUIRE(marks[3] == std::vector<bool>{false, false, true, false, false, false, false});
}

TEST_CASE("times of another machine are remarked") {
  CalibrationRequest request = request_of(4, 0.01);
  request.tables.resize(1);
  for (MeasuredRow& row : request.tables[0].table.rows) {
    row.time = SimTime(row.time.picoseconds() * (row.size < mib(1) ? 3 : 1));
  }
  const ProfileCalibration result = calibration_of(request);
  REQUIRE(!result.warnings.empty());
  REQUIRE(result.warnings.back().find("may be others") != std::string::npos);
}

TEST_CASE("tables that no run of this machine can have are left out by name") {
  CalibrationRequest request = request_of(2, 0.01);
  request.tables.resize(2);
  request.tables[0].table.ranks = 12;
  request.tables[0].table.nodes = 1;
  const ProfileCalibration result = calibration_of(request);
  REQUIRE(result.tables.size() == 1);
  REQUIRE(result.warnings.at(0) ==
          "all_reduce.log: left out: expected up to 8 ranks on each of 1 nodes, found 12 ranks");
  request.tables.resize(1);
  REQUIRE_THROWS_WITH(
      calibration_of(request),
      "all_reduce.log: left out: expected up to 8 ranks on each of 1 nodes, found 12 ranks");
}

}  // namespace trainyard
