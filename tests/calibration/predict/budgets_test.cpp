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

Budgets seen(int covered, double median) {
  return seen_budgets(validation(covered, median));
}

TEST_CASE("recording rounds up and keeps what is lower") {
  const Budgets first = lowered(seen(2, 0.1231), {});
  REQUIRE(first.at("a").at("covered") == 2.0);
  REQUIRE(first.at("a").at("median_error_large") == Approx(0.124));
  REQUIRE(first.at("a").at("p90_error_large") == Approx(0.247));
  REQUIRE_FALSE(first.at("a").contains("median_error_small"));
  REQUIRE(lowered(seen(1, 0.5), first) == first);
  const Budgets better = lowered(seen(3, 0.05), first);
  REQUIRE(better.at("a").at("median_error_large") == Approx(0.05));
  REQUIRE(better.at("a").at("covered") == 3.0);
}

TEST_CASE("what exceeds a budget is named, equal figures do not") {
  const Budgets budgets = lowered(seen(2, 0.124), {});
  REQUIRE(exceeded_budgets(seen(2, 0.124), budgets).empty());
  REQUIRE(exceeded_budgets(seen(3, 0.1), budgets).empty());
  REQUIRE(exceeded_budgets(seen(1, 0.124), budgets) ==
          std::vector<std::string>{"a: covered: expected at least 2, found 1",
                                   "all: covered: expected at least 2, found 1"});
  REQUIRE(exceeded_budgets(seen(2, 0.125), budgets).at(0) ==
          "a: median_error_large: expected at most 0.124, found 0.1250");
  Validation gone = validation(2, 0.1);
  gone.classes.clear();
  REQUIRE(exceeded_budgets(seen_budgets(gone), budgets) ==
          std::vector<std::string>{"a: covered: expected at least 2, found nothing",
                                   "a: median_error_large: expected at most 0.124, found nothing",
                                   "a: p90_error_large: expected at most 0.248, found nothing"});
}

TEST_CASE("budgets are written as they are read") {
  const Budgets budgets = lowered(seen(2, 0.1231), {});
  const ScratchFolder folder;
  const auto file = folder.write("budgets.yaml", to_yaml(budgets));
  REQUIRE(to_yaml(load_budgets(file)) == to_yaml(budgets));
  REQUIRE_THROWS_AS(load_budgets(folder.write("bad.yaml", "a: {covered: 1, median: 2}\n")),
                    ConfigError);
}

}  // namespace
}  // namespace trainyard
