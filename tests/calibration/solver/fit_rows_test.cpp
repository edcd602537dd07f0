// SPDX-License-Identifier: Apache-2.0
// What is known of a time that is the longer of two sums.
#include "support/catch.h"

#include "calibration/solver/fit_rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace trainyard {
namespace {

// max(2 a + b, 5 a) and a + 1 / c, in seconds; `d` has no part.
class Model : public FitModel {
 public:
  void set_points(std::span<const std::vector<double>> points) override {
    points_.assign(points.begin(), points.end());
  }
  void log_times(std::size_t /*table*/, std::size_t point, std::span<const std::size_t> rows,
                 std::span<double> times) override {
    const std::vector<double>& x = points_.at(point);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ++asked;
      times[i] = std::log(time(rows[i], x));
    }
  }
  static double time(std::size_t row, const std::vector<double>& x) {
    const double a = std::exp(x[0]);
    return row == 0 ? std::max(2.0 * a + std::exp(x[1]), 5.0 * a) : a + std::exp(-x[2]);
  }

  int asked = 0;

 private:
  std::vector<std::vector<double>> points_;
};

void one_by_one(std::size_t count, const std::function<void(std::size_t)>& task) {
  for (std::size_t i = 0; i < count; ++i) {
    task(i);
  }
}

struct Known {
  Known() { rows.find_influences(start); }
  [[nodiscard]] double log_time(std::size_t row, const std::vector<double>& point) {
    return rows.log_time(row, point, derivatives);
  }

  Model model;
  std::vector<FitParameter> parameters{
      {.name = "times.a", .start = 0.0, .min = -9.0, .max = 9.0, .neighbour = {}},
      {.name = "times.b", .start = 0.0, .min = -9.0, .max = 9.0, .neighbour = {}},
      {.name = "rates.c", .start = 0.0, .min = -9.0, .max = 9.0, .neighbour = {}, .slower = -1.0},
      {.name = "d", .start = 0.0, .min = -9.0, .max = 9.0, .neighbour = {}}};
  std::vector<FitTable> tables{
      {.name = "t", .system = "s", .rows = {{.log_measured = 0.0}, {.log_measured = 0.0}}}};
  TaskRunner run = one_by_one;
  FitRows rows{model, parameters, tables, run};
  std::vector<double> start{0.0, 0.0, 0.0, 0.0};
  std::vector<double> derivatives;
};

const std::vector<std::size_t> kTable{0};

}  // namespace

TEST_CASE("the constants that can change a row are found, also those that wait behind others",
          "[fit]") {
  const Known known;
  REQUIRE(known.rows.rows()[0].parameters == std::vector<std::uint32_t>{0, 1});
  REQUIRE(known.rows.rows()[1].parameters == std::vector<std::uint32_t>{0, 2});
}

TEST_CASE("a tangent is exact in times and one over rates", "[fit]") {
  Known known;
  REQUIRE(known.rows.learn(known.start, kTable) == 2);
  const std::vector<double> far{0.5, -0.5, -1.0, 2.0};
  REQUIRE(known.log_time(1, far) == Approx(std::log(Model::time(1, far))));
  REQUIRE(known.derivatives[0] == Approx(std::exp(0.5) / Model::time(1, far)));
  REQUIRE(known.derivatives[1] == Approx(-std::exp(1.0) / Model::time(1, far)));
}

TEST_CASE("two tangents know both branches of the longer of two", "[fit]") {
  Known known;
  const std::vector<double> other{0.0, 2.0, 0.0, 0.0};
  static_cast<void>(known.rows.learn(known.start, kTable));
  REQUIRE(known.log_time(0, other) < std::log(Model::time(0, other)) - 0.5);
  REQUIRE(known.rows.learn(other, kTable) == 1);
  for (const double b : {-1.0, 0.5, 1.05, 1.15, 3.0}) {
    const std::vector<double> point{0.0, b, 0.0, 0.0};
    REQUIRE(known.log_time(0, point) == Approx(std::log(Model::time(0, point))).margin(1e-9));
  }
}

TEST_CASE("the model is not asked again close to where it was", "[fit]") {
  Known known;
  static_cast<void>(known.rows.learn(known.start, kTable));
  const int asked = known.model.asked;
  REQUIRE(known.rows.learn({0.01, 0.01, 0.0, 5.0}, kTable) == 0);
  REQUIRE(known.model.asked == asked);
  // Further away it is, and what was known leads there.
  REQUIRE(known.rows.learn({0.5, 0.0, 0.0, 0.0}, kTable) == 0);
  REQUIRE(known.model.asked == asked + 2);
}

TEST_CASE("forget drops what was learned since keep", "[fit]") {
  Known known;
  static_cast<void>(known.rows.learn(known.start, kTable));
  known.rows.keep();
  const std::vector<double> other{0.0, 2.0, 0.0, 0.0};
  const double before = known.log_time(0, other);
  static_cast<void>(known.rows.learn(other, kTable));
  REQUIRE(known.log_time(0, other) > before);
  known.rows.forget();
  REQUIRE(known.log_time(0, other) == before);
}

}  // namespace trainyard
