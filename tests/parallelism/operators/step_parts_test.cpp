// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/operators/step_parts.h"

#include <set>
#include <string>

namespace trainyard {

TEST_CASE("parts of a step have names of their own and add up", "[step]") {
  std::set<std::string> names;
  StepParts parts;
  for (std::size_t index = 0; index < kStepParts; ++index) {
    const auto part = static_cast<StepPart>(index);
    names.emplace(to_string(part));
    parts[part] = SimTime(static_cast<std::int64_t>(index) + 1);
  }
  REQUIRE(names.size() == kStepParts);
  REQUIRE(names.count("") == 0);
  REQUIRE(parts.total() == SimTime(153));
  StepParts twice = parts;
  twice += parts;
  REQUIRE(twice.total() == SimTime(306));
  REQUIRE(twice[StepPart::Attention] == SimTime(4));
}

}  // namespace trainyard
