// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "hw/switch/port_choice.h"

#include <algorithm>
#include <vector>

#include "sim/random.h"

namespace trainyard {
namespace {

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

}  // namespace
}  // namespace trainyard
