// SPDX-License-Identifier: Apache-2.0
// Measured memory of training steps. The bars are the errors seen when the rows were added, rounded
// up: they may only go down.
#include "calibration/measured/memory_measurement.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/catch.h"
#include "support/paths.h"

namespace trainyard {
namespace {

const std::filesystem::path kMemoryRows = source_dir() / "validation" / "training" / "memory";

struct Bar {
  std::string file;
  std::size_t rows = 0;
  double median = 0.0;
  double worst = 0.0;
};

}  // namespace

TEST_CASE("measured memory is met", "[memory]") {
  const std::vector<Bar> bars{{.file = "simumax-b200", .rows = 10, .median = 0.01, .worst = 0.015},
                              {.file = "zero-bubble", .rows = 57, .median = 0.04, .worst = 0.14},
                              {.file = "bigscience", .rows = 40, .median = 0.055, .worst = 0.40},
                              {.file = "torchtitan", .rows = 12, .median = 0.045, .worst = 0.22},
                              {.file = "kempnerforge", .rows = 10, .median = 0.025, .worst = 0.19},
                              {.file = "sailor", .rows = 15, .median = 0.085, .worst = 0.39}};
  for (const Bar& bar : bars) {
    const MemoryMeasurements measured =
        load_memory_measurements(kMemoryRows / (bar.file + ".yaml"));
    std::vector<double> errors;
    for (const MeasuredMemory& row : measured.rows) {
      const Bytes predicted = predicted_memory(row, measured.level);
      errors.push_back(std::abs(std::log(static_cast<double>(predicted.count()) /
                                         static_cast<double>(row.measured.count()))));
    }
    std::sort(errors.begin(), errors.end());
    const double median = (errors[(errors.size() - 1) / 2] + errors[errors.size() / 2]) / 2;
    INFO(bar.file << ": median " << median << ", worst " << errors.back());
    REQUIRE(measured.rows.size() == bar.rows);
    REQUIRE_FALSE(measured.source.empty());
    REQUIRE(median <= bar.median);
    REQUIRE(errors.back() <= bar.worst);
  }
}

TEST_CASE("levels of memory contain each other", "[memory]") {
  const MemoryMeasurements measured = load_memory_measurements(kMemoryRows / "torchtitan.yaml");
  for (const MeasuredMemory& row : measured.rows) {
    const Bytes allocated = predicted_memory(row, MemoryLevel::Allocated);
    const Bytes reserved = predicted_memory(row, MemoryLevel::Reserved);
    REQUIRE(allocated < reserved);
    REQUIRE(reserved < predicted_memory(row, MemoryLevel::Device));
  }
}

TEST_CASE("a row that cannot be read is refused at its place", "[memory]") {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / "trainyard_memory_rows.yaml";
  std::filesystem::remove(file);
  REQUIRE_THROWS_AS(load_memory_measurements(file), ConfigError);
}

}  // namespace trainyard
