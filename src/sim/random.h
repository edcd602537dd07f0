// SPDX-License-Identifier: Apache-2.0
// Named streams of random numbers: one for each purpose, so that drawing more for one purpose never
// changes what another one sees. A stream depends on the seed of the run and on its own name only.
//
// The engine is std::mt19937_64, whose output the C++ standard fixes. The standard's distributions
// differ between libraries, so that the few that are needed are members here.
#pragma once

#include <cstdint>
#include <random>
#include <string_view>

namespace trainyard {

// The finaliser of splitmix64: a bijection in which each bit of `value` moves about half of the
// bits of the result. For hashing and for seeds; mix64(0) is 0.
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

// A step of splitmix64: before mixing it adds 2^64 divided by the golden ratio, so that 0 is no
// fixed point.
[[nodiscard]] constexpr std::uint64_t hash64(std::uint64_t value) {
  return mix64(value + 0x9E3779B97F4A7C15);
}

class RandomStream {
 public:
  // `name` says what is drawn, such as "ecmp" or "arrivals". Equal seed and name, equal numbers.
  RandomStream(std::uint64_t seed, std::string_view name);

  // Any 64 bits, each value as likely as any other.
  std::uint64_t next();
  // One of 0 ... bound - 1, each exactly as likely as any other. `bound` must be positive.
  std::uint64_t below(std::uint64_t bound);
  // A multiple of 2^-53 in [0, 1).
  double uniform();
  // Exponentially distributed with mean 1, at most 36.8. It uses additions, multiplications and one
  // division alone, whose bits IEEE 754 fixes; std::log differs between libraries in the last one.
  double exponential();

 private:
  std::mt19937_64 engine_;
};

}  // namespace trainyard
