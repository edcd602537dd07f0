// SPDX-License-Identifier: Apache-2.0
// Reads busbw over algbw of a run. The program that printed both divided by the factor of its
// own operation and number of ranks (bus_factor), so the ratio tells them, whatever else was said.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibration/measured/measured_rows.h"
#include "collectives/schedule/operation.h"

namespace trainyard {

// Returns the factors that most rows allow, by the digits that they print; nothing where fewer than
// three rows in four allow the same one, or all allow any.
[[nodiscard]] std::optional<BusRatio> bus_ratio_of(std::span<const PrintedRow> rows);

// Numbers of ranks, the first to the last.
struct RankRange {
  int first = 0;
  int last = 0;
};
// Returns with how many ranks the operation has such a ratio; nothing with none. `last` is
// kMaxRatioRanks where any larger number has it as well.
inline constexpr int kMaxRatioRanks = 100'000;
[[nodiscard]] std::optional<RankRange> ranks_of(const BusRatio& ratio, Operation operation);

// Returns whether each rank ran by itself: then busbw is 0.
[[nodiscard]] bool is_of_one_rank(const BusRatio& ratio);

// Returns what the ratio says instead, "all_reduce of 8 ranks (busbw / algbw is 1.75)"; nothing if
// it is that of the operation, and of that many ranks where the number is given.
[[nodiscard]] std::optional<std::string> ratio_says_otherwise(const BusRatio& ratio,
                                                              Operation operation,
                                                              std::optional<int> ranks);

}  // namespace trainyard
