// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "hw/switch/port_chooser.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/random.h"

namespace trainyard {
namespace {

using namespace literals;

std::uint32_t draw(RandomStream& random) {
  return static_cast<std::uint32_t>(random.next() >> 32);
}

TEST_CASE("a grade of one byte takes the shortest queue", "[transport]") {
  const GradeRule exact{.step = Bytes(1), .grades = std::int64_t{1} << 40};
  RandomStream random(1, "ports");
  for (int i = 0; i < 1000; ++i) {
    std::vector<std::int64_t> queued(1 + random.below(8));
    for (std::int64_t& bytes : queued) {
      bytes = static_cast<std::int64_t>(random.below(5) * 1000);
    }
    const std::uint32_t port = choose_port(exact, queued, kNoPort, draw(random));
    REQUIRE(queued[port] == *std::min_element(queued.begin(), queued.end()));
  }
}

TEST_CASE("ports of one grade are as likely as each other", "[transport]") {
  const GradeRule rule;
  RandomStream random(2, "ports");
  const std::vector<std::int64_t> queued = {0, 40'000, 16'383, 16'384, 5'000};
  std::vector<int> taken(queued.size());
  constexpr int kDraws = 9000;
  for (int i = 0; i < kDraws; ++i) {
    ++taken[choose_port(rule, queued, kNoPort, draw(random))];
  }
  REQUIRE(taken[1] + taken[3] == 0);
  for (const std::size_t port : {std::size_t{0}, std::size_t{2}, std::size_t{4}}) {
    REQUIRE(taken[port] == Approx(kDraws / 3).margin(225));  // Five standard deviations.
  }
}

TEST_CASE("a flow stays where it was until that is worse by more than the slack", "[transport]") {
  const GradeRule rule{.step = Bytes(1000), .grades = 8, .slack = 1};
  const std::vector<std::int64_t> queued = {500, 1500, 2500};
  REQUIRE(choose_port(rule, queued, 0, 0) == 0);
  REQUIRE(choose_port(rule, queued, 1, 0) == 1);
  REQUIRE(choose_port(rule, queued, 2, 0) == 0);
}

TEST_CASE("what is longer than the last grade is all alike", "[transport]") {
  const GradeRule rule{.step = Bytes(1000), .grades = 3};
  const std::vector<std::int64_t> queued = {9000, 2000, 1'000'000};
  REQUIRE(choose_port(rule, queued, kNoPort, 0) == 0);
  REQUIRE(choose_port(rule, queued, kNoPort, 0xFFFF'FFFF) == 2);
}

TEST_CASE("a flowlet begins after a gap and not within it", "[transport]") {
  FlowletTable table(100_us, 1);
  std::uint32_t begun = 0;
  const auto count = [&](std::uint32_t) { return begun++; };
  REQUIRE(table.choice(7, SimTime(), count) == 0);
  REQUIRE(table.choice(7, 100_us, count) == 0);
  REQUIRE(table.choice(7, 200_us + picoseconds(1), count) == 1);
  REQUIRE(table.choice(7, 250_us, count) == 1);
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
