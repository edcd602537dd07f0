// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/compare/compare_files.h"

#include <algorithm>

#include "sim/config_error.h"

namespace trainyard {
namespace {

bool has_key(const std::vector<ComparedValue>& values, const std::string& key) {
  return std::any_of(values.begin(), values.end(),
                     [&](const ComparedValue& value) { return value.key == key; });
}

}  // namespace

TEST_CASE("two clusters differ in keys and in what their links come to", "[compare-files]") {
  const RunComparison made = compare_files("dgx-a100", "dgx-h100");
  REQUIRE(has_key(made.inputs, "server"));
  REQUIRE(has_key(made.resources, "nvlink"));
  REQUIRE(!has_key(made.inputs, "fabric.template"));
  REQUIRE(made.times.empty());
}

TEST_CASE("a file does not differ from itself, nor is a cluster a workload", "[compare-files]") {
  const RunComparison same = compare_files("llama-3-8b", "llama-3-8b");
  REQUIRE(same.inputs.empty());
  REQUIRE(same.what == "workloads");
  REQUIRE(has_key(compare_files("llama-3-8b", "llama-3-405b").inputs, "plan.tensor"));
  REQUIRE_THROWS_AS(compare_files("llama-3-8b", "dgx-a100"), ConfigError);
  REQUIRE_THROWS_AS(compare_files("nobody", "dgx-a100"), ConfigError);
}

}  // namespace trainyard
