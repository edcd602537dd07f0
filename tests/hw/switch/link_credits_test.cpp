// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "hw/switch/link_credits.h"

namespace trainyard {

using namespace literals;

TEST_CASE("a buffer for the full rate is a round trip and two packets", "[transport]") {
  // 400 Gb/s over 100 m: 50 kB, and what updates and packets add.
  const std::int64_t blocks = credit_buffer(gigabits_per_second(400), 500_ns, 200_ns, Bytes(4122));
  REQUIRE(blocks == (50'000 + 10'000 + 2 * 4122 + 63) / 64);
}

}  // namespace trainyard
