// SPDX-License-Identifier: Apache-2.0
// Histories of changes. After each solve the rates are compared with filling from scratch, so that
// nothing may depend on how they came about; what solve() returns is compared with what changed.
#include "support/catch.h"

#include <algorithm>
#include <vector>

#include "network/flow/max_min.h"
#include "support/effort.h"
#include "support/naive_max_min.h"

namespace trainyard {
namespace {

// A solver and what it should know.
class Twin {
 public:
  explicit Twin(MaxMinInstance instance)
      : instance_(std::move(instance)),
        solver_(instance_.capacities),
        flows_(instance_.paths.size()),
        flows_before_(flows_.size()),
        rates_before_(flows_.size()) {
    for (const auto& path : instance_.paths) {
      solver_.add_class(path);
    }
  }

  void set(std::size_t index, std::uint32_t flows) {
    flows_[index] = flows;
    solver_.set_multiplicity(static_cast<MaxMinSolver::ClassIndex>(index), flows);
  }
  void set_capacity(std::size_t link, Bandwidth capacity) {
    instance_.capacities[link] = capacity;
    solver_.set_capacity(static_cast<MaxMinSolver::LinkIndex>(link),
                         static_cast<FlowRate>(capacity.bits_per_second())
                             << kFlowRateFractionBits);
  }
  [[nodiscard]] std::size_t links() const { return instance_.capacities.size(); }
  [[nodiscard]] std::uint32_t flows(std::size_t index) const { return flows_[index]; }
  [[nodiscard]] std::uint64_t classes_visited() const { return solver_.classes_visited(); }
  [[nodiscard]] std::size_t classes() const { return flows_.size(); }

  // Solves and returns what is wrong, or nothing.
  std::string solve() {
    const auto returned = solver_.solve();
    std::vector<bool> reported(flows_.size());
    for (const MaxMinSolver::ClassIndex index : returned) {
      if (reported[index] || flows_[index] == 0) {
        return "class " + std::to_string(index) + " is returned twice or without flows";
      }
      reported[index] = true;
    }
    const std::vector<FlowRate> expected = naive_rates(instance_, flows_);
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      const FlowRate rate = solver_.rate(static_cast<MaxMinSolver::ClassIndex>(i));
      if (rate != expected[i]) {
        return "class " + std::to_string(i) + " has rate " + std::to_string(rate) + ", not " +
               std::to_string(expected[i]);
      }
      const bool changed = rate != rates_before_[i] || flows_[i] != flows_before_[i];
      if (reported[i] != (changed && flows_[i] > 0)) {
        return "class " + std::to_string(i) + (changed ? " is not returned" : " is returned");
      }
    }
    flows_before_ = flows_;
    rates_before_ = expected;
    return "";
  }

 private:
  MaxMinInstance instance_;
  MaxMinSolver solver_;
  std::vector<std::uint32_t> flows_;
  std::vector<std::uint32_t> flows_before_;
  std::vector<FlowRate> rates_before_;
};

// Solves after batches of 1 to `max` joins, departures and changes of multiplicity. Returns what is
// wrong with the first solution that is, or nothing.
std::string run_history(Twin& twin, RandomStream& random, int solves, std::size_t max,
                        std::uint32_t max_flows) {
  for (int i = 0; i < solves; ++i) {
    const std::size_t batch = 1 + random.below(random.below(2) == 0 ? 1 : max);
    for (std::size_t k = 0; k < batch; ++k) {
      const std::size_t index = random.below(twin.classes());
      const bool leaves = twin.flows(index) > 0 && random.below(2) == 0;
      twin.set(index, leaves ? 0 : 1 + static_cast<std::uint32_t>(random.below(max_flows)));
    }
    if (const std::string mistake = twin.solve(); !mistake.empty()) {
      return "solve " + std::to_string(i) + ": " + mistake;
    }
  }
  return "";
}

// With some hundred classes a few joins are few enough to be swept; in a larger batch, or with
// fewer classes, filling and sweeps alternate.
TEST_CASE("random histories on random paths end where filling from scratch does") {
  for (std::uint64_t seed = 0; seed < cases(200); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "max-min histories");
    const std::size_t links = 1 + random.below(80);
    const std::size_t classes = 1 + random.below(random.below(2) == 0 ? 60 : 500);
    Twin twin(random_paths(random, links, classes, 1 + random.below(6), false));
    REQUIRE(run_history(twin, random, 40, 1 + random.below(12), random.below(2) == 0 ? 1 : 40) ==
            "");
  }
}

// Links of 1 or 2 bit/s and up to 60,000 flows: many shares are equal, and what rounding leaves
// over is not small.
TEST_CASE("random histories are exact where rounding is coarse") {
  for (std::uint64_t seed = 0; seed < cases(300); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "coarse max-min histories");
    const std::size_t links = 1 + random.below(40);
    const std::size_t classes = 1 + random.below(random.below(2) == 0 ? 40 : 400);
    Twin twin(random_paths(random, links, classes, 1 + random.below(4), true));
    const auto max_flows = static_cast<std::uint32_t>(60'000 / classes);
    REQUIRE(run_history(twin, random, 60, 1 + random.below(8), max_flows) == "");
  }
}

TEST_CASE("random histories on stars and two-tier Clos networks are exact") {
  for (std::uint64_t seed = 0; seed < cases(40); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "max-min fabrics");
    Twin star(random_star(random, 2 + random.below(20), 300));
    REQUIRE(run_history(star, random, 40, 5, 1) == "");
    Twin clos(random_clos(random, 4, 4, 300));
    REQUIRE(run_history(clos, random, 40, 5, 2) == "");
  }
}

// Capacities rise and fall while flows come and go, by up to a factor of 16.
TEST_CASE("random histories of capacities end where filling from scratch does") {
  for (std::uint64_t seed = 0; seed < cases(200); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "max-min capacities");
    const std::size_t links = 1 + random.below(60);
    const std::size_t classes = 1 + random.below(random.below(2) == 0 ? 40 : 400);
    const bool is_coarse = random.below(2) == 0;
    Twin twin(random_paths(random, links, classes, 1 + random.below(5), is_coarse));
    const auto max_flows = static_cast<std::uint32_t>(is_coarse ? 60'000 / classes : 20);
    for (int change = 0; change < 30; ++change) {
      for (std::uint64_t i = random.below(4); i > 0; --i) {
        const auto rate = static_cast<std::int64_t>(1 + random.below(16));
        twin.set_capacity(random.below(twin.links()),
                          is_coarse ? Bandwidth(rate) : gigabits_per_second(50 * rate));
      }
      REQUIRE(run_history(twin, random, random.below(2) == 0 ? 1 : 2, 3, max_flows) == "");
      REQUIRE(twin.solve() == "");
    }
  }
}

// Few of many change, so that all but the first solve are sweeps.
TEST_CASE("single changes among thousands of classes are exact") {
  RandomStream random(1, "max-min stress");
  Twin twin(random_clos(random, 16, 16, 4000));
  for (std::size_t i = 0; i < twin.classes(); ++i) {
    twin.set(i, static_cast<std::uint32_t>(random.below(2)));
  }
  REQUIRE(twin.solve() == "");
  const std::uint64_t visited = twin.classes_visited();
  constexpr int kSolves = 30;
  for (int i = 0; i < kSolves; ++i) {
    const std::size_t index = random.below(twin.classes());
    twin.set(index, twin.flows(index) > 0 ? 0 : 1);
    INFO("solve " << i);
    REQUIRE(twin.solve() == "");
  }
  REQUIRE(twin.classes_visited() - visited < kSolves * twin.classes() / 4);
}

}  // namespace
}  // namespace trainyard
