// SPDX-License-Identifier: Apache-2.0
// Budgets only go down, and what exceeds them is named.
#include "support/catch.h"

#include <string>

#include "calibration/predict/budgets.h"
#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {
namespace {

GroupResult group(const std::string& name, int covered, double median) {
  GroupResult result;
  result.name = name;
  result.cases = 3;
  result.covered = covered;
  result.large = {.tables = 2, .median = median, .p90 = 2.0 * median, .bias = 0.0};
  return result;
}

Validation validation(int covered, double median) {
  Validation result;
  result.classes.push_back(group("a", covered, median));
  result.all = group("all", covered, median);
  return result;
}

TEST_CASE("recording rounds up and keeps what is lower") {
  const Budgets first = lowered(validation(2, 0.1231), {});
  REQUIRE(first.groups.at("a").covered == 2);
  REQUIRE(*first.groups.at("a").median_large == Approx(0.124));
  REQUIRE(*first.groups.at("a").p90_large == Approx(0.247));
  REQUIRE_FALSE(first.groups.at("a").median_small.has_value());
  const Budgets worse = lowered(validation(1, 0.5), first);
  REQUIRE(*worse.groups.at("a").median_large == Approx(0.124));
  REQUIRE(worse.groups.at("a").covered == 2);
  const Budgets better = lowered(validation(3, 0.05), first);
  REQUIRE(*better.groups.at("a").median_large == Approx(0.05));
  REQUIRE(better.groups.at("a").covered == 3);
}

TEST_CASE("what exceeds a budget is named, equal figures do not") {
  const Budgets budgets = lowered(validation(2, 0.124), {});
  REQUIRE(exceeded_budgets(validation(2, 0.124), budgets).empty());
  REQUIRE(exceeded_budgets(validation(3, 0.1), budgets).empty());
  REQUIRE(exceeded_budgets(validation(1, 0.124), budgets) ==
          std::vector<std::string>{"a: covered: expected at least 2, found 1",
                                   "all: covered: expected at least 2, found 1"});
  REQUIRE(exceeded_budgets(validation(2, 0.125), budgets).at(0) ==
          "a: median_error_large: expected at most 0.124, found 0.1250");
  Validation gone = validation(2, 0.1);
  gone.classes.clear();
  REQUIRE(exceeded_budgets(gone, budgets) ==
          std::vector<std::string>{"a: covered: expected at least 2, found 0"});
}

TEST_CASE("budgets are written as they are read") {
  const Budgets budgets = lowered(validation(2, 0.1231), {});
  const ScratchFolder folder;
  const auto file = folder.write("budgets.yaml", to_yaml(budgets));
  REQUIRE(to_yaml(load_budgets(file)) == to_yaml(budgets));
  REQUIRE_THROWS_AS(load_budgets(folder.write("bad.yaml", "a: {covered: 1, median: 2}\n")),
                    ConfigError);
}

}  // namespace
}  // namespace trainyard
