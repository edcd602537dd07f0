// SPDX-License-Identifier: Apache-2.0
// The known values were computed with an independent implementation of the Mersenne twister,
// splitmix64 and FNV-1a, itself checked against the standard's value for the 10000th number.
#include "support/catch.h"

#include "sim/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace trainyard {
namespace {

std::vector<std::uint64_t> first_numbers(std::uint64_t seed, std::string_view name, int count) {
  RandomStream stream(seed, name);
  std::vector<std::uint64_t> numbers;
  for (int i = 0; i < count; ++i) {
    numbers.push_back(stream.next());
  }
  return numbers;
}

TEST_CASE("mix64 is the finaliser of splitmix64") {
  constexpr std::uint64_t kGoldenGamma = 0x9E3779B97F4A7C15;
  REQUIRE(mix64(0) == 0);
  REQUIRE(mix64(1) == 6238072747940578789U);
  REQUIRE(mix64(kGoldenGamma) == 16294208416658607535U);
  REQUIRE(mix64(1234567 + kGoldenGamma) == 6457827717110365317U);
  REQUIRE(hash64(1234567) == 6457827717110365317U);
}

TEST_CASE("mix64 moves about half of the bits for each bit of its argument") {
  for (int bit = 0; bit < 64; ++bit) {
    int moved = 0;
    for (std::uint64_t value = 1; value <= 100; ++value) {
      moved += __builtin_popcountll(mix64(value) ^ mix64(value ^ (std::uint64_t{1} << bit)));
    }
    INFO("bit " << bit);
    REQUIRE(moved > 100 * 28);
    REQUIRE(moved < 100 * 36);
  }
}

TEST_CASE("a stream's numbers are those written down here, with every standard library") {
  using Numbers = std::vector<std::uint64_t>;
  REQUIRE(first_numbers(1, "ecmp", 3) ==
          Numbers{17173744651581965685U, 17688006075397713312U, 16312605439354389773U});
  REQUIRE(first_numbers(1, "arrivals", 3) ==
          Numbers{13834595762131012542U, 7632720594557930541U, 5917589583005257037U});
  REQUIRE(first_numbers(2, "ecmp", 3) ==
          Numbers{5306128642485681150U, 16315332892646190153U, 18071470103529869100U});
  REQUIRE(first_numbers(0, "", 3) ==
          Numbers{11318723717224786041U, 15031772153591173338U, 4803457997835942386U});

  RandomStream digits(1, "ecmp");
  for (const std::uint64_t digit : Numbers{9, 9, 8, 5, 2, 9, 8, 5, 1, 1, 6, 9}) {
    REQUIRE(digits.below(10) == digit);
  }
  REQUIRE(RandomStream(1, "ecmp").uniform() == 0.9309905630478239);
}

TEST_CASE("streams of different names and seeds share no numbers") {
  std::set<std::uint64_t> seen;
  std::size_t drawn = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const std::string name : {"", "a", "b", "ab", "ba", "ecmp", "ecmp0", "ecmp1"}) {
      for (const std::uint64_t number : first_numbers(seed, name, 50)) {
        seen.insert(number);
        ++drawn;
      }
    }
  }
  REQUIRE(seen.size() == drawn);
}

TEST_CASE("drawing from one stream does not change another") {
  RandomStream first(7, "first");
  RandomStream second(7, "second");
  std::vector<std::uint64_t> interleaved;
  for (int i = 0; i < 100; ++i) {
    first.below(static_cast<std::uint64_t>(i) + 1);
    interleaved.push_back(second.next());
  }
  REQUIRE(interleaved == first_numbers(7, "second", 100));
}

// The correlation of n independent pairs has a standard deviation of 1 / sqrt(n) = 0.003.
TEST_CASE("streams of neighbouring seeds are not correlated") {
  constexpr int kPairs = 100'000;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    RandomStream left(seed, "noise");
    RandomStream right(seed + 1, "noise");
    double sum = 0.0;
    for (int i = 0; i < kPairs; ++i) {
      sum += (left.uniform() - 0.5) * (right.uniform() - 0.5) * 12.0;
    }
    INFO("seed=" << seed);
    REQUIRE(std::abs(sum / kPairs) < 0.016);
  }
}

// Chi-squared with 99 degrees of freedom: a mean of 99 and a standard deviation of 14.1. The seeds
// are fixed, so that the test cannot fail by chance.
TEST_CASE("below gives each value as often as any other") {
  constexpr std::size_t kBound = 100;
  constexpr int kDraws = 100'000;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    RandomStream stream(seed, "dice");
    std::array<int, kBound> counts{};
    for (int i = 0; i < kDraws; ++i) {
      ++counts.at(stream.below(kBound));
    }
    double chi_squared = 0.0;
    for (const int count : counts) {
      const double excess = count - kDraws / static_cast<double>(kBound);
      chi_squared += excess * excess / (kDraws / static_cast<double>(kBound));
    }
    INFO("seed=" << seed);
    REQUIRE(chi_squared > 50.0);
    REQUIRE(chi_squared < 160.0);
  }
}

// With three quarters of 2^64 as bound a plain multiplication would give every third value twice as
// often as the others; a quarter of the draws must be rejected.
TEST_CASE("below has no bias for bounds that do not divide 2^64") {
  constexpr std::uint64_t kBound = 0xC000000000000000;
  constexpr int kDraws = 30'000;
  RandomStream stream(1, "wide");
  std::array<int, 3> residues{};
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t value = stream.below(kBound);
    REQUIRE(value < kBound);
    ++residues.at(value % 3);
  }
  for (const int count : residues) {
    REQUIRE(std::abs(count - kDraws / 3) < 5 * 82);
  }
}

TEST_CASE("below one is always zero and below the largest bound is taken") {
  RandomStream stream(3, "edges");
  for (int i = 0; i < 100; ++i) {
    REQUIRE(stream.below(1) == 0);
    REQUIRE(stream.below(~std::uint64_t{0}) < ~std::uint64_t{0});
  }
}

// The mean of n uniform numbers has a standard deviation of 1 / sqrt(12 n) = 0.0009.
TEST_CASE("uniform numbers fill the half-open unit interval evenly") {
  constexpr int kDraws = 100'000;
  RandomStream stream(5, "uniform");
  double sum = 0.0;
  double min = 1.0;
  double max = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = stream.uniform();
    sum += value;
    min = std::min(min, value);
    max = std::max(max, value);
  }
  REQUIRE(min >= 0.0);
  REQUIRE(min < 0.0002);
  REQUIRE(max < 1.0);
  REQUIRE(max > 0.9998);
  REQUIRE(std::abs(sum / kDraws - 0.5) < 0.0046);
}

// The mean of n exponential numbers has a standard deviation of 1 / sqrt(n) = 0.0032, the number of
// those above the median one of sqrt(n) / 2 = 158.
TEST_CASE("exponential numbers have mean 1 and the right median, and are logarithms") {
  constexpr int kDraws = 100'000;
  RandomStream stream(5, "exponential");
  RandomStream same(5, "exponential");
  double sum = 0.0;
  int above_median = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = stream.exponential();
    REQUIRE(value >= 0.0);
    REQUIRE(value == Approx(-std::log(1.0 - same.uniform())).epsilon(1e-14).margin(1e-16));
    sum += value;
    above_median += value > std::log(2.0) ? 1 : 0;
  }
  REQUIRE(std::abs(sum / kDraws - 1.0) < 0.016);
  REQUIRE(std::abs(above_median - kDraws / 2) < 5 * 158);
}

}  // namespace
}  // namespace trainyard
