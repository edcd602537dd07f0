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
[[nodiscard]] std::uint64_t mix64(std::uint64_t value);

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

 private:
  std::mt19937_64 engine_;
};

}  // namespace trainyard
