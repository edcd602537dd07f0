// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "sim/printable.h"

#include <string>

namespace trainyard {

TEST_CASE("control characters are escaped and other text is kept") {
  REQUIRE(escaped("25 MiB") == "25 MiB");
  REQUIRE(escaped("a\nb\tc\r\x1b[1m\x7f") == "a\\nb\\tc\\x0d\\x1b[1m\\x7f");
  REQUIRE(escaped(std::string("\0", 1)) == "\\x00");
  REQUIRE(escaped("\xc3\xa9 \xc2\xa0") == "\xc3\xa9 \xc2\xa0");
  REQUIRE(escaped("\xc2\x9b") == "\\xc2\\x9b");
}

TEST_CASE("letters become small, and nothing else changes") {
  REQUIRE(lower_case("0000:C7:00.0 AZaz[\xC3\x84") == "0000:c7:00.0 azaz[\xC3\x84");
}

TEST_CASE("long text is cut at 60 bytes, between characters") {
  const std::string sixty(60, 'x');
  REQUIRE(in_quotes(sixty) == '"' + sixty + '"');
  REQUIRE(in_quotes(sixty + "y") == '"' + sixty + "...\"");
  REQUIRE(shortened(std::string(59, 'x') + "\xc3\xa9tage") == std::string(59, 'x') + "...");
  REQUIRE(shortened(std::string(59, 'x') + "\xc3\xa9") == std::string(59, 'x') + "...");
}

}  // namespace trainyard
