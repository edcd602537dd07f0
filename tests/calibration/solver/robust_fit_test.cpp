// SPDX-License-Identifier: Apache-2.0
// On a model of our own with known constants: a call takes a start, some hops, and the longer of
// what a block copies and what a link carries.
#include "support/catch.h"

#include "calibration/solver/robust_fit.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace trainyard {
namespace {

enum Constant : std::size_t { kStart, kOldHop, kOldRate, kNewHop, kNewRate, kLink, kUnused };

const std::vector<double> kTruth{8.0, 0.9, 12.0, 0.5, 21.0, 90.0, 1.0};

struct Machine {
  std::string system;
  bool is_new = false;
  int hops = 7;
  int blocks = 8;
};

double time_of(const Machine& machine, double kilobytes, const std::vector<double>& constants) {
  const double hop = constants[machine.is_new ? kNewHop : kOldHop];
  const double rate = constants[machine.is_new ? kNewRate : kOldRate];
  const double carried = kilobytes / std::min(machine.blocks * rate, constants[kLink]);
  return constants[kStart] + hop * machine.hops + carried;
}

class Model : public FitModel {
 public:
  explicit Model(std::vector<Machine> machines) : machines_(std::move(machines)) {}

  static double kilobytes(std::size_t row) { return std::pow(4.0, static_cast<double>(row)); }

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
      times[i] = std::log(time_of(machines_.at(table), kilobytes(rows[i]), constants));
    }
  }

 private:
  std::vector<Machine> machines_;
  std::vector<std::vector<double>> points_;
};

FitParameter parameter(const std::string& name, double start, double slower) {
  return {.name = name,
          .start = std::log(start),
          .min = std::log(start / 50.0),
          .max = std::log(start * 50.0),
          .spread = std::log(2.0),
          .neighbour = {},
          .slower = slower};
}

std::vector<FitParameter> parameters() {
  std::vector<FitParameter> all{parameter("start", 5.0, 1.0),      parameter("old.hop", 1.5, 1.0),
                                parameter("old.rate", 20.0, -1.0), parameter("new.hop", 1.5, 1.0),
                                parameter("new.rate", 20.0, -1.0), parameter("link", 200.0, -1.0),
                                parameter("unused", 3.0, 1.0)};
  all[kNewHop].neighbour = kOldHop;
  all[kNewRate].neighbour = kOldRate;
  return all;
}

// What these machines would measure, some per cent off, up and down in turns.
FitTable measured(const Machine& machine, double noise) {
  FitTable table{.name = machine.system, .system = machine.system, .rows = {}};
  for (std::size_t row = 0; row < 10; ++row) {
    const double sign = row % 2 == 0 ? 1.0 : -1.0;
    const double time = time_of(machine, Model::kilobytes(row), kTruth);
    table.rows.push_back({.log_measured = std::log(time) + sign * noise});
  }
  return table;
}

const std::vector<Machine> kMachines{{.system = "a", .is_new = false, .hops = 7, .blocks = 4},
                                     {.system = "b", .is_new = false, .hops = 15, .blocks = 8},
                                     {.system = "b", .is_new = false, .hops = 3, .blocks = 2},
                                     {.system = "c", .is_new = true, .hops = 7, .blocks = 2},
                                     {.system = "d", .is_new = true, .hops = 14, .blocks = 16}};

std::vector<FitTable> all_measured(double noise) {
  std::vector<FitTable> tables;
  for (const Machine& machine : kMachines) {
    tables.push_back(measured(machine, noise));
  }
  return tables;
}

void one_by_one(std::size_t count, const std::function<void(std::size_t)>& task) {
  for (std::size_t i = 0; i < count; ++i) {
    task(i);
  }
}

struct Fitting {
  explicit Fitting(std::vector<FitTable> tables)
      : model(kMachines), fit(model, parameters(), std::move(tables), {}, one_by_one) {}
  Model model;
  RobustFit fit;
};

double ratio(const Fit& fit, Constant constant) {
  return std::exp(fit.parameters[constant].value) / kTruth[constant];
}

}  // namespace

TEST_CASE("a fit finds the constants behind noisy times, with how sure it is", "[fit]") {
  Fitting fitting(all_measured(0.02));
  const Fit fit = fitting.fit.fit();
  REQUIRE(fit.converged);
  for (const Constant constant : {kStart, kOldHop, kOldRate, kNewHop, kNewRate, kLink}) {
    INFO(constant);
    REQUIRE(ratio(fit, constant) == Approx(1.0).margin(0.12));
    REQUIRE(fit.parameters[constant].standard_error > 0.001);
    REQUIRE(fit.parameters[constant].standard_error < 0.3);
    REQUIRE(fit.parameters[constant].rows > 4);
  }
  REQUIRE(fit.parameters[kStart].systems == std::vector<std::string>{"a", "b", "c", "d"});
  REQUIRE(fit.parameters[kNewHop].systems == std::vector<std::string>{"c", "d"});
}

TEST_CASE("a constant that no row shows stays as it was assumed", "[fit]") {
  Fitting fitting(all_measured(0.02));
  const FittedParameter unused = fitting.fit.fit().parameters[kUnused];
  REQUIRE(unused.value == Approx(std::log(3.0)));
  REQUIRE(unused.rows == 0);
  REQUIRE(unused.standard_error >= Approx(std::log(2.0)));
}

TEST_CASE("times that the model cannot have do not pull the rest", "[fit]") {
  std::vector<FitTable> tables = all_measured(0.02);
  tables[1].rows[8].log_measured += std::log(3.0);
  Fitting fitting(tables);
  const Fit fit = fitting.fit.fit();
  REQUIRE(ratio(fit, kOldRate) == Approx(1.0).margin(0.08));
  REQUIRE(ratio(fit, kLink) == Approx(1.0).margin(0.15));
}

TEST_CASE("where the search begins does not matter", "[fit]") {
  Fitting fitting(all_measured(0.02));
  const Fit usual = fitting.fit.fit();
  for (const double factor : {0.3, 4.0}) {
    std::vector<double> begin;
    for (const double value : kTruth) {
      begin.push_back(std::log(value * factor));
    }
    const Fit other = fitting.fit.fit(std::nullopt, begin);
    for (std::size_t k = 0; k < begin.size(); ++k) {
      INFO(k);
      REQUIRE(other.parameters[k].value == Approx(usual.parameters[k].value).margin(0.03));
    }
  }
}

TEST_CASE("what a system that is left out measured has no part in the fit", "[fit]") {
  Fitting fitting(all_measured(0.02));
  std::vector<FitTable> tables = all_measured(0.02);
  for (FitTable& table : tables) {
    for (FitTable::Row& row : table.rows) {
      row.log_measured += table.system == "b" ? std::log(5.0) : 0.0;
    }
  }
  Fitting other(tables);
  const Fit fit = fitting.fit.fit("b");
  const Fit same = other.fit.fit("b");
  REQUIRE(ratio(other.fit.fit(), kOldHop) > 1.5);
  for (std::size_t k = 0; k < kTruth.size(); ++k) {
    INFO(k);
    REQUIRE(fit.parameters[k].value == Approx(same.parameters[k].value).margin(0.02));
  }
  REQUIRE(ratio(fit, kOldRate) == Approx(1.0).margin(0.06));
}

TEST_CASE("a constant without a table takes that of its neighbour", "[fit]") {
  std::vector<FitTable> tables = all_measured(0.0);
  tables[4].system = tables[3].system;  // Both of the new generation.
  Fitting fitting(tables);
  const Fit fit = fitting.fit.fit("c");
  REQUIRE(fit.parameters[kNewHop].systems.empty());
  REQUIRE(fit.parameters[kNewHop].value == Approx(fit.parameters[kOldHop].value).margin(1e-3));
  REQUIRE(fit.parameters[kNewHop].standard_error > fit.parameters[kOldHop].standard_error);
}

TEST_CASE("fits do not depend on those before", "[fit]") {
  Fitting fitting(all_measured(0.02));
  const Fit first = fitting.fit.fit("a");
  static_cast<void>(fitting.fit.fit("d"));
  const Fit again = fitting.fit.fit("a");
  for (std::size_t k = 0; k < kTruth.size(); ++k) {
    REQUIRE(first.parameters[k].value == again.parameters[k].value);
  }
}

TEST_CASE("a copy with a model of its own fits as the first one", "[fit]") {
  Fitting fitting(all_measured(0.02));
  static_cast<void>(fitting.fit.fit());
  const Fit first = fitting.fit.fit("a");
  Fitting other(all_measured(0.02));
  RobustFit copy(fitting.fit, other.model, one_by_one);
  const Fit again = copy.fit("a");
  REQUIRE(again.rounds == first.rounds);
  for (std::size_t k = 0; k < kTruth.size(); ++k) {
    REQUIRE(first.parameters[k].value == again.parameters[k].value);
    REQUIRE(first.parameters[k].standard_error == again.parameters[k].standard_error);
  }
}

TEST_CASE("a fit with other weights and spreads leaves rows out and holds constants", "[fit]") {
  std::vector<FitTable> tables = all_measured(0.0);
  tables[0].rows[9].log_measured += 2.0;
  Fitting fitting(tables);
  FitChange change{.weights = {}, .spreads = {}, .scale = 0.05};
  std::vector<double> begin;
  for (const FitParameter& one : parameters()) {
    change.spreads.push_back(one.spread);
    begin.push_back(one.start);
  }
  change.weights.assign(50, 1.0);
  change.weights[9] = 0.0;
  change.spreads[kLink] = 1e-4;
  const Fit fit = fitting.fit.fit(change, begin);
  REQUIRE(std::exp(fit.parameters[kLink].value) == Approx(200.0).epsilon(0.001));
  REQUIRE(ratio(fit, kStart) == Approx(1.0).margin(0.05));
  std::vector<double> point;
  for (const FittedParameter& one : fit.parameters) {
    point.push_back(one.value);
  }
  const std::vector<RobustFitRow> rows = fitting.fit.rows_at(point);
  REQUIRE(rows.size() == 50);
  REQUIRE(rows[9].misfit == Approx(-2.0).margin(0.3));
  REQUIRE(rows[9].parameters.size() == rows[9].derivatives.size());
}

}  // namespace trainyard
