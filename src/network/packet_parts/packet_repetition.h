// SPDX-License-Identifier: Apache-2.0
// Finds after which time what was noted repeats itself. What is found is a guess that somebody else
// proves: notes do not have all that decides what comes next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "network/packet_parts/packet_port.h"

namespace trainyard {

// Something happened at a time; equal keys mean the same.
struct Mark {
  Picoseconds time = 0;
  std::uint64_t key = 0;
};

// Returns the least time after which the last marks repeat, again and again for at least
// `least_repeated` of them, and twice in any case. Marks are in order of time.
[[nodiscard]] std::optional<Picoseconds> period_of(std::span<const Mark> marks,
                                                   std::size_t least_repeated);

}  // namespace trainyard
