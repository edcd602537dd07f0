// SPDX-License-Identifier: Apache-2.0
// On a closed form with constants that the test knows: a call takes a start, hops, and the longer
// of what blocks copy and what a link carries.
#include "support/catch.h"

#include "calibration/solver/constant_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/random.h"
#include "support/effort.h"

namespace trainyard {
namespace {

enum Constant : std::size_t { kStart, kHop, kRate, kLink, kTwinA, kTwinB, kUnused };
constexpr std::size_t kConstants = 7;
const std::vector<double> kShipped{8.0, 0.9, 12.0, 150.0, 1.0, 1.0, 3.0};
constexpr std::size_t kRows = 20;

struct Shape {
  int hops = 7;
  int blocks = 4;
  double twins = 0.0;  // How often a call takes both twins: only their sum can be seen.
};
const std::vector<Shape> kShapes{{.hops = 3, .blocks = 4, .twins = 2.0},
                                 {.hops = 30, .blocks = 8, .twins = 2.0},
                                 {.hops = 7, .blocks = 24, .twins = 2.0}};

double time_of(const Shape& shape, std::size_t row, const std::vector<double>& constants) {
  const double kilobytes = std::pow(2.0, static_cast<double>(row));
  return constants[kStart] + shape.hops * constants[kHop] +
         shape.twins * (constants[kTwinA] + constants[kTwinB]) +
         kilobytes / std::min(shape.blocks * constants[kRate], constants[kLink]);
}

class ClosedForm : public FitModel {
 public:
  void set_points(std::span<const std::vector<double>> points) override {
    points_.assign(points.begin(), points.end());
  }
  void log_times(std::size_t table, std::size_t point, std::span<const std::size_t> rows,
                 std::span<double> times) override {
    std::vector<double> constants;
    for (const double x : points_.at(point)) {
      constants.push_back(std::exp(x));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      times[i] = std::log(time_of(kShapes.at(table), rows[i], constants));
    }
  }

 private:
  std::vector<std::vector<double>> points_;
};

std::vector<FitParameter> parameters_around_shipped() {
  const std::vector<std::string> names{"start",  "hop",    "rate",  "link",
                                       "twin.a", "twin.b", "unused"};
  std::vector<FitParameter> all;
  for (std::size_t k = 0; k < kConstants; ++k) {
    all.push_back({.name = names[k],
                   .start = std::log(kShipped[k]),
                   .min = std::log(kShipped[k] / 50.0),
                   .max = std::log(kShipped[k] * 50.0),
                   .spread = std::log(2.0),
                   .neighbour = {},
                   .slower = k == kRate || k == kLink ? -1.0 : 1.0});
  }
  return all;
}

// Of mean 0 and variance 1, near enough.
double normal(RandomStream& stream) {
  double sum = -6.0;
  for (int i = 0; i < 12; ++i) {
    sum += stream.uniform();
  }
  return sum;
}

struct Measured {
  std::vector<FitTable> tables;
  std::vector<std::vector<bool>> kept_out;
};

Measured measured_with(const std::vector<double>& truth, double noise, double outliers,
                       RandomStream& stream) {
  Measured made;
  for (std::size_t t = 0; t < kShapes.size(); ++t) {
    FitTable table{.name = "table" + std::to_string(t), .system = "", .rows = {}};
    for (std::size_t row = 0; row < kRows; ++row) {
      const double error = noise * normal(stream);
      const double gross = stream.uniform() < outliers ? std::log(2.5) : 0.0;
      const double sign = stream.uniform() < 0.5 ? 1.0 : -1.0;
      table.rows.push_back(
          {.log_measured = std::log(time_of(kShapes[t], row, truth)) + error + sign * gross});
    }
    made.tables.push_back(std::move(table));
    std::vector<bool>& kept_out = made.kept_out.emplace_back(kRows, false);
    for (std::size_t row = 2; row < kRows; row += 4) {
      kept_out[row] = true;
    }
  }
  return made;
}

void in_turn(std::size_t count, const std::function<void(std::size_t)>& task) {
  for (std::size_t i = 0; i < count; ++i) {
    task(i);
  }
}

ConstantFit fit_of(const Measured& measured) {
  ClosedForm model;
  return fit_constants(model, parameters_around_shipped(), measured.tables, measured.kept_out, {},
                       in_turn);
}

struct TrialCount {
  std::size_t intervals = 0;
  std::size_t holding = 0;
  double kept_out = 0.0;  // Sum of misfits of rows that are kept out, over trials.
};

// Machines whose constants are up to a factor of 1.6 off what is shipped, either way.
TrialCount run_trials(std::uint64_t trials, double outliers) {
  TrialCount count;
  for (std::uint64_t seed = 0; seed < trials; ++seed) {
    RandomStream stream(seed, "constant fit");
    std::vector<double> truth = kShipped;
    for (double& value : truth) {
      value *= std::exp((stream.uniform() - 0.5) * 2.0 * std::log(1.6));
    }
    const ConstantFit fit = fit_of(measured_with(truth, 0.03, outliers, stream));
    for (std::size_t k = 0; k < kConstants; ++k) {
      const ConstantEstimate& one = fit.constants[k];
      if (one.is_determined) {
        ++count.intervals;
        count.holding +=
            std::abs(one.value - std::log(truth[k])) <= 1.645 * one.standard_error ? 1U : 0U;
      }
    }
  }
  return count;
}

}  // namespace

TEST_CASE("known constants lie in their intervals of 90 %, with outliers as without", "[fit]") {
  for (const double outliers : {0.0, 0.05}) {
    const TrialCount count = run_trials(cases(100), outliers);
    INFO("outliers " << outliers << ": " << count.holding << " of " << count.intervals);
    REQUIRE(count.intervals >= 3 * cases(100));
    REQUIRE(static_cast<double>(count.holding) >= 0.85 * static_cast<double>(count.intervals));
  }
}

TEST_CASE("what the rows do not tell apart or do not show stays as it is shipped", "[fit]") {
  RandomStream stream(7, "constant fit");
  std::vector<double> truth = kShipped;
  truth[kHop] *= 1.4;
  const ConstantFit fit = fit_of(measured_with(truth, 0.02, 0.0, stream));
  for (const Constant twin : {kTwinA, kTwinB}) {
    REQUIRE(!fit.constants[twin].is_determined);
    REQUIRE(fit.constants[twin].value == Approx(std::log(kShipped[twin])));
    REQUIRE(fit.constants[twin].reason.find("the rows leave a factor of ") == 0);
  }
  REQUIRE(!fit.constants[kUnused].is_determined);
  REQUIRE(fit.constants[kUnused].reason == "no row moves with it");
  REQUIRE(fit.constants[kHop].is_determined);
  REQUIRE(fit.constants[kHop].value == Approx(std::log(truth[kHop])).margin(0.1));
  REQUIRE(fit.constants[kHop].tables.size() == 3);
  REQUIRE(fit.moving == 6);
  REQUIRE(fit.rank < fit.moving);
}

TEST_CASE("outliers are found, and rows that are kept out show what the fit is worth", "[fit]") {
  RandomStream stream(3, "constant fit");
  std::vector<double> truth = kShipped;
  truth[kRate] *= 0.7;
  Measured measured = measured_with(truth, 0.02, 0.0, stream);
  measured.tables[1].rows[9].log_measured += std::log(2.0);
  const ConstantFit fit = fit_of(measured);
  REQUIRE(fit.tables[1][9].use == RowUse::Outlier);
  REQUIRE(fit.tables[1][9].fitted == Approx(-std::log(2.0)).margin(0.1));
  REQUIRE(fit.tables[0][2].use == RowUse::KeptOut);
  REQUIRE(!fit.many_outliers);
  double before = 0.0;
  double after = 0.0;
  for (const std::vector<EstimatedRow>& table : fit.tables) {
    for (const EstimatedRow& row : table) {
      before += row.use == RowUse::KeptOut ? std::abs(row.shipped) : 0.0;
      after += row.use == RowUse::KeptOut ? std::abs(row.fitted) : 0.0;
    }
  }
  REQUIRE(after < 0.5 * before);
  REQUIRE(fit.noise == Approx(0.02).margin(0.01));
}

TEST_CASE("a model that is off in many rows is no reason to leave rows out", "[fit]") {
  RandomStream stream(5, "constant fit");
  Measured measured = measured_with(kShipped, 0.01, 0.0, stream);
  for (std::size_t row = 0; row < kRows; ++row) {
    measured.tables[0].rows[row].log_measured += row % 2 == 0 ? 0.9 : -0.9;
  }
  const ConstantFit fit = fit_of(measured);
  REQUIRE(fit.many_outliers);
  REQUIRE(fit.tables[0][0].use == RowUse::Fitted);
}

}  // namespace trainyard
