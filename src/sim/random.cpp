// SPDX-License-Identifier: Apache-2.0
// Sources: splitmix64, Steele, Lea and Flood, "Fast splittable pseudorandom number generators"
// (2014), with the constants of Vigna's public-domain version; FNV-1a, Fowler, Noll and Vo;
// `below`, Lemire, "Fast random integer generation in an interval" (2019), algorithm 5.
#include "sim/random.h"

#include <algorithm>
#include <cmath>

#include "sim/check.h"

namespace trainyard {

namespace {

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char letter : text) {
    hash ^= static_cast<unsigned char>(letter);
    hash *= 0x100000001B3;
  }
  return hash;
}

// The natural logarithm of a number in (0, 1]. With x = m 2^e, m in [1/2, 1) and s = (m - 1) /
// (m + 1), which is in [-1/3, 0),
//     ln x = e ln 2 + 2 (s + s^3 / 3 + s^5 / 5 + ...).
// The first term left out is at most 2 / 43 x 3^-43, a millionth of the last bit of ln 1/2.
double log_by_series(double x) {
  constexpr double kLogOfTwo = 0x1.62e42fefa39efp-1;
  constexpr int kLastPower = 41;
  int exponent = 0;
  const double m = std::frexp(x, &exponent);  // Exact.
  const double s = (m - 1.0) / (m + 1.0);
  double sum = 0.0;
  for (int power = kLastPower; power >= 1; power -= 2) {
    sum = sum * s * s + 1.0 / power;
  }
  return exponent * kLogOfTwo + 2.0 * s * sum;
}

}  // namespace

// The seed is mixed before it meets the name, so that neighbouring seeds do not become a small
// difference that another name could make up for.
RandomStream::RandomStream(std::uint64_t seed, std::string_view name)
    : engine_(mix64(hash64(seed) ^ fnv1a(name))) {}

std::uint64_t RandomStream::next() {
  return engine_();
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  CHECK(bound > 0, "a random number below zero was asked for");
  using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(next()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    // 2^64 modulo bound: so many low halves would make some results one case likelier than others.
    const std::uint64_t surplus = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < surplus) {
      product = static_cast<Wide>(next()) * bound;
    }
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double RandomStream::uniform() {
  return static_cast<double>(next() >> 11) * 0x1p-53;
}

double RandomStream::exponential() {
  return std::max(0.0, -log_by_series(1.0 - uniform()));  // The series of 1 leaves a rounding.
}

}  // namespace trainyard
