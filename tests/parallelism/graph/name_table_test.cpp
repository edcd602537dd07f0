// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/graph/name_table.h"

#include <map>
#include <string>

#include "sim/random.h"

namespace trainyard {

TEST_CASE("equal texts are one, numbered as they came first", "[name_table]") {
  NameTable names;
  std::map<std::string, std::uint32_t> expected;
  RandomStream random(0, "names");
  for (int each = 0; each < 20'000; ++each) {
    // The empty text is one as well.
    const std::uint64_t drawn = random.below(3'000);
    const std::string text = drawn == 0 ? "" : "name " + std::to_string(drawn);
    const auto number = static_cast<std::uint32_t>(expected.size());
    const auto entry = expected.emplace(text, number).first;
    REQUIRE(names.add(text) == entry->second);
  }
  REQUIRE(names.size() == expected.size());
  for (const auto& [text, number] : expected) {
    REQUIRE(names[number] == text);
  }
}

}  // namespace trainyard
