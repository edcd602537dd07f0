// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "sim/numbers.h"

#include <cstdint>
#include <limits>

namespace trainyard {
namespace {

TEST_CASE("a number is the whole text or nothing", "[numbers]") {
  REQUIRE(parse_number<int>("12") == 12);
  REQUIRE(parse_number<int>("-12") == -12);
  REQUIRE(parse_number<double>("2.5e3") == 2500.0);
  for (const char* const text : {"", " 1", "1 ", "+1", "1x", "x", "0x1", "1.5", "99999999999"}) {
    INFO(text);
    REQUIRE_FALSE(parse_number<int>(text).has_value());
  }
  REQUIRE_FALSE(parse_number<std::uint32_t>("-1").has_value());
  REQUIRE_FALSE(parse_number<double>("1e999").has_value());
}

TEST_CASE("a number outside its limits is nothing, and so is NaN", "[numbers]") {
  REQUIRE(parse_number("1", 1, 3) == 1);
  REQUIRE(parse_number("3", 1, 3) == 3);
  REQUIRE_FALSE(parse_number("0", 1, 3).has_value());
  REQUIRE_FALSE(parse_number("4", 1, 3).has_value());
  constexpr double kEndless = std::numeric_limits<double>::infinity();
  REQUIRE_FALSE(parse_number("nan", -kEndless, kEndless).has_value());
}

}  // namespace
}  // namespace trainyard
