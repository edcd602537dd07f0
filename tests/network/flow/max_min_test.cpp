// SPDX-License-Identifier: Apache-2.0
// The contract of the solver on cases small enough to work out by hand, and filling from scratch
// against two simple solvers, one in integers and one in real numbers.
#include "support/catch.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "network/flow/max_min.h"
#include "support/naive_max_min.h"

namespace trainyard {
namespace {

using ClassIndex = MaxMinSolver::ClassIndex;
using Classes = std::vector<ClassIndex>;

constexpr FlowRate kUnit = FlowRate{1} << kFlowRateFractionBits;  // 1 bit/s.

Classes solved(MaxMinSolver& solver) {
  const auto returned = solver.solve();
  Classes sorted(returned.begin(), returned.end());
  std::ranges::sort(sorted);
  return sorted;
}

ClassIndex add(MaxMinSolver& solver, std::vector<MaxMinSolver::LinkIndex> path) {
  return solver.add_class(path);
}

TEST_CASE("a class that is alone on its links has the least capacity, shared by its flows") {
  const std::vector<Bandwidth> capacities{Bandwidth(90), Bandwidth(30), Bandwidth(60)};
  MaxMinSolver solver(capacities);
  const ClassIndex index = add(solver, {0, 1, 2});
  solver.set_multiplicity(index, 1);
  REQUIRE(solver.rate(index) == 0);
  REQUIRE(solved(solver) == Classes{index});
  REQUIRE(solver.rate(index) == 30 * kUnit);

  solver.set_multiplicity(index, 7);
  REQUIRE(solved(solver) == Classes{index});
  REQUIRE(solver.rate(index) == 30 * kUnit / 7);

  solver.set_multiplicity(index, 0);
  REQUIRE(solved(solver).empty());
  REQUIRE(solver.rate(index) == 0);
  REQUIRE(solver.classes_visited() == 0);
}

TEST_CASE("a class that joins one that was alone, and leaves it alone again, is seen by it") {
  const std::vector<Bandwidth> capacities{Bandwidth(10), Bandwidth(100), Bandwidth(100)};
  MaxMinSolver solver(capacities);
  const ClassIndex first = add(solver, {0, 1});
  const ClassIndex second = add(solver, {1, 2});
  solver.set_multiplicity(first, 1);
  REQUIRE(solved(solver) == Classes{first});
  solver.set_multiplicity(second, 1);
  REQUIRE(solved(solver) == Classes{second});  // The first stays at the 10 of its own link.
  REQUIRE(solver.rate(second) == 90 * kUnit);
  solver.set_multiplicity(second, 9);
  REQUIRE(solved(solver) == Classes{second});
  REQUIRE(solver.rate(second) == 10 * kUnit);
  solver.set_multiplicity(second, 99);
  REQUIRE(solved(solver) == Classes{first, second});
  REQUIRE(solver.rate(first) == kUnit);
  solver.set_multiplicity(second, 0);
  REQUIRE(solved(solver) == Classes{first});
  REQUIRE(solver.rate(first) == 10 * kUnit);
}

TEST_CASE("flows on a line get the level of the fullest link they cross") {
  const std::vector<Bandwidth> capacities(4, Bandwidth(60));
  MaxMinSolver solver(capacities);
  const ClassIndex whole = add(solver, {0, 1, 2, 3});
  const ClassIndex pair = add(solver, {1, 2});
  const ClassIndex single = add(solver, {1});
  const ClassIndex last = add(solver, {3});
  for (const ClassIndex index : {whole, pair, single, last}) {
    solver.set_multiplicity(index, 1);
  }
  REQUIRE(solved(solver) == Classes{whole, pair, single, last});
  REQUIRE(solver.rate(whole) == 20 * kUnit);
  REQUIRE(solver.rate(pair) == 20 * kUnit);
  REQUIRE(solver.rate(single) == 20 * kUnit);
  REQUIRE(solver.rate(last) == 40 * kUnit);
}

TEST_CASE("links of equal share stop their flows together, whatever rounding leaves over") {
  // On each link 33,000 flows share 65,536 units: 1 each, and 32,536 are left over. If one link
  // came first, the other would be left with 3,000 flows and give them 11 each.
  const std::vector<Bandwidth> capacities{Bandwidth(1), Bandwidth(1)};
  MaxMinSolver solver(capacities);
  const ClassIndex both = add(solver, {0, 1});
  const ClassIndex only_first = add(solver, {0});
  const ClassIndex only_second = add(solver, {1});
  solver.set_multiplicity(both, 30000);
  solver.set_multiplicity(only_first, 3000);
  solver.set_multiplicity(only_second, 3000);
  solver.solve();
  REQUIRE(kUnit / 33000 == 1);
  REQUIRE(solver.rate(both) == 1);
  REQUIRE(solver.rate(only_first) == 1);
  REQUIRE(solver.rate(only_second) == 1);
}

TEST_CASE("flows that come and go between two solves leave no trace") {
  const std::vector<Bandwidth> capacities(2, Bandwidth(100));
  MaxMinSolver solver(capacities);
  const ClassIndex stays = add(solver, {0, 1});
  const ClassIndex passes = add(solver, {0});
  solver.set_multiplicity(stays, 1);
  solver.solve();
  solver.set_multiplicity(passes, 5);
  solver.set_multiplicity(passes, 0);
  solver.set_multiplicity(stays, 3);
  solver.set_multiplicity(stays, 1);
  REQUIRE(solved(solver).empty());
  REQUIRE(solver.rate(stays) == 100 * kUnit);
}

TEST_CASE("a class whose flows change and whose rate does not is returned") {
  const std::vector<Bandwidth> capacities{Bandwidth(40), Bandwidth(120)};
  MaxMinSolver solver(capacities);
  const ClassIndex first = add(solver, {0, 1});
  const ClassIndex second = add(solver, {0});
  solver.set_multiplicity(first, 1);
  solver.set_multiplicity(second, 1);
  REQUIRE(solved(solver) == Classes{first, second});
  solver.set_multiplicity(first, 0);
  const ClassIndex third = add(solver, {0, 1});
  solver.set_multiplicity(third, 1);
  REQUIRE(solved(solver) == Classes{third});
  REQUIRE(solver.rate(second) == 20 * kUnit);
  REQUIRE(solver.rate(third) == 20 * kUnit);
}

// Beliefs of a sweep may exceed 64 bits: each of the classes that join hopes for all of the link.
TEST_CASE("many flows that join a fast link at once do not overflow") {
  const std::vector<Bandwidth> capacities(200, kMaxBandwidth);
  MaxMinSolver solver(capacities);
  for (MaxMinSolver::LinkIndex link = 1; link < 200; ++link) {
    solver.set_multiplicity(add(solver, {link}), 1);
  }
  solver.solve();
  const ClassIndex first = add(solver, {0});
  const ClassIndex second = add(solver, {0, 1});
  solver.set_multiplicity(first, 1);
  solver.solve();
  solver.set_multiplicity(first, 4'000'000'000);
  solver.set_multiplicity(second, 200'000'000);
  solver.solve();
  const FlowRate capacity = static_cast<FlowRate>(kMaxBandwidth.bits_per_second()) * kUnit;
  REQUIRE(solver.rate(first) == capacity / 4'200'000'000);
  REQUIRE(solver.rate(second) == capacity / 4'200'000'000);
}

// All flows at once, so that it is filling that is tested.
void require_max_min(const MaxMinInstance& instance, RandomStream& random,
                     std::uint32_t max_flows) {
  MaxMinSolver solver(instance.capacities);
  solver.reserve(instance.paths.size(), 4 * instance.paths.size());
  std::vector<std::uint32_t> flows;
  for (const auto& path : instance.paths) {
    const ClassIndex index = solver.add_class(path);
    REQUIRE(std::ranges::equal(solver.path(index), path));
    flows.push_back(static_cast<std::uint32_t>(random.below(max_flows + 1)));
    solver.set_multiplicity(index, flows.back());
  }
  solver.solve();
  std::vector<FlowRate> rates;
  for (ClassIndex index = 0; index < flows.size(); ++index) {
    rates.push_back(solver.rate(index));
  }
  REQUIRE(rates == naive_rates(instance, flows));
  REQUIRE(max_min_violation(instance, flows, rates) == "");
  const std::vector<long double> real = real_rates(instance, flows);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    REQUIRE(std::abs(static_cast<long double>(rates[i]) - real[i]) <= 1e-9L * real[i]);
  }
}

TEST_CASE("rates are max-min fair and those of two simple solvers") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "max-min filling");
    const std::size_t links = 1 + random.below(30);
    const std::size_t classes = 1 + random.below(60);
    require_max_min(random_paths(random, links, classes, 1 + random.below(6), false), random, 20);
    require_max_min(random_star(random, 2 + random.below(10), classes), random, 1);
    require_max_min(random_clos(random, 2 + random.below(3), 3, classes), random, 3);
  }
}

}  // namespace
}  // namespace trainyard
