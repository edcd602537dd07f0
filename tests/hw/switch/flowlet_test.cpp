// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "hw/switch/flowlet.h"

#include <map>

#include "sim/random.h"

namespace trainyard {
namespace {

using namespace literals;

TEST_CASE("a flowlet begins after a gap and not within it", "[transport]") {
  Flowlet flowlet;
  REQUIRE(flowlet.begins(SimTime(), 100_us));
  REQUIRE(!flowlet.begins(100_us, 100_us));
  REQUIRE(flowlet.begins(200_us + picoseconds(1), 100_us));
  REQUIRE(!flowlet.begins(250_us, 100_us));
}

TEST_CASE("a flow without gaps keeps its choice, one with gaps only draws often", "[transport]") {
  FlowletTable table(10_us, 1024);
  RandomStream random(5, "flowlets");
  int draws = 0;
  const auto draw = [&](std::uint32_t previous) {
    REQUIRE((previous < 4 || previous == kNoPort));
    ++draws;
    return static_cast<std::uint32_t>(random.below(4));
  };
  const std::uint32_t first = table.choice(7, 1_us, draw);
  for (int i = 1; i < 1000; ++i) {
    REQUIRE(table.choice(7, 1_us + 10_us * i, draw) == first);
  }
  REQUIRE(draws == 1);
  std::map<std::uint32_t, int> taken;
  for (int i = 0; i < 4000; ++i) {
    ++taken[table.choice(8, 11_us * i, draw)];
  }
  REQUIRE(draws == 4001);
  for (const auto& [choice, count] : taken) {
    REQUIRE(count == Approx(1000).margin(140));  // Five standard deviations.
  }
}

TEST_CASE("flows that meet in an entry share their flowlet", "[transport]") {
  FlowletTable table(10_us, 16);
  REQUIRE(table.choice(3, 1_us, [](std::uint32_t) { return 1U; }) == 1);
  REQUIRE(table.choice(19, 2_us, [](std::uint32_t) { return 2U; }) == 1);
  REQUIRE(table.choice(4, 2_us, [](std::uint32_t) { return 2U; }) == 2);
}

}  // namespace
}  // namespace trainyard
