// SPDX-License-Identifier: Apache-2.0
// Work that is done at a speed that changes while it is under way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "sim/check.h"
#include "sim/units.h"

namespace trainyard {

inline constexpr std::int64_t kPartsPerMillion = 1'000'000;
// Work that is left is counted in these parts of a picosecond, so that what is rounded away at a
// change of speed is less than that.
inline constexpr std::int64_t kWorkGrain = 256;

// Returns the grains of one operation, at most ten hours.
[[nodiscard]] inline std::int64_t grains_of(SimTime work) {
  CHECK(work.picoseconds() <= std::numeric_limits<std::int64_t>::max() / kWorkGrain,
        "work of at most ten hours");
  return work.picoseconds() * kWorkGrain;
}

// Its work in grains, and how fast it goes.
struct WorkProgress {
  std::int64_t left = 0;
  std::int64_t factor_ppm = kPartsPerMillion;  // Time over work.
  SimTime since;
  std::uint32_t generation = 0;

  void catch_up(SimTime now) {
    const auto elapsed = static_cast<__int128>((now - since).picoseconds()) * kWorkGrain;
    const auto done = static_cast<std::int64_t>(elapsed * kPartsPerMillion / factor_ppm);
    left = std::max<std::int64_t>(0, left - done);
    since = now;
  }
  [[nodiscard]] SimTime time_left() const {
    const __int128 scaled = static_cast<__int128>(left) * factor_ppm;
    const __int128 unit = static_cast<__int128>(kWorkGrain) * kPartsPerMillion;
    return SimTime(static_cast<std::int64_t>((scaled + unit - 1) / unit));
  }
};

}  // namespace trainyard
