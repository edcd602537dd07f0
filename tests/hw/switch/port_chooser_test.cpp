// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "hw/switch/port_chooser.h"

#include <array>
#include <cstdint>

namespace trainyard {
namespace {

using namespace literals;

TEST_CASE("a choice for each packet takes the best grade, and equals alike often", "[transport]") {
  PortChooser chooser({.unit = AdaptiveOptions::Unit::Packet}, 1);
  const std::array<std::int64_t, 4> queued{1'000, 20'000, 0, 16'383};
  std::array<int, 4> taken{};
  for (int i = 0; i < 3000; ++i) {
    ++taken.at(chooser.choose(queued, 7, 1_us));
  }
  REQUIRE(taken[1] == 0);
  for (const std::size_t port : {0U, 2U, 3U}) {
    REQUIRE(taken.at(port) == Approx(1000).margin(130));  // Five standard deviations.
  }
}

TEST_CASE("a flowlet keeps its port whatever waits there, the next one only if it is as good",
          "[transport]") {
  PortChooser chooser({.unit = AdaptiveOptions::Unit::Flowlet, .gap = 10_us, .entries = 64}, 1);
  std::array<std::int64_t, 2> queued{};
  const std::uint32_t first = chooser.choose(queued, 7, 0_us);
  queued.at(first) = 1'000'000;
  REQUIRE(chooser.choose(queued, 7, 10_us) == first);
  REQUIRE(chooser.choose(queued, 7, 21_us) == 1 - first);
  queued.at(first) = 0;
  for (int i = 1; i < 50; ++i) {
    REQUIRE(chooser.choose(queued, 7, 21_us + 11_us * i) == 1 - first);
  }
}

TEST_CASE("flows that share an entry and have fewer ports still get one of theirs", "[transport]") {
  PortChooser chooser({.unit = AdaptiveOptions::Unit::Flowlet, .gap = 10_us, .entries = 1}, 1);
  const std::array<std::int64_t, 5> queued{9'999'999, 9'999'999, 9'999'999, 9'999'999, 0};
  REQUIRE(chooser.choose(queued, 1, 1_us) == 4);
  REQUIRE(chooser.choose(std::span(queued).first(3), 2, 2_us) == 1);
}

}  // namespace
}  // namespace trainyard
