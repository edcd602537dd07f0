// SPDX-License-Identifier: Apache-2.0
// Sources: splitmix64, Steele, Lea and Flood, "Fast splittable pseudorandom number generators"
// (2014), with the constants of Vigna's public-domain version; FNV-1a, Fowler, Noll and Vo;
// `below`, Lemire, "Fast random integer generation in an interval" (2019), algorithm 5.
#include "sim/random.h"

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

}  // namespace trainyard
