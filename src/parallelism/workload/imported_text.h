// SPDX-License-Identifier: Apache-2.0
// Shares among readers of workloads of other tools: numbers, limits and errors.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config_error.h"
#include "sim/numbers.h"
#include "sim/printable.h"
#include "sim/units.h"

namespace trainyard {

// Limit for one call or message: what a damaged number asks for beyond it would take days to
// simulate.
inline constexpr std::int64_t kMaxImportedBytes = std::int64_t{1} << 40;
inline constexpr std::int64_t kMaxImportedRank = 1'000'000;
// All operations of a file together, and those of a run, so that no sum of times overflows: 50
// days.
inline constexpr std::int64_t kMaxImportedTime = std::int64_t{50} * 24 * 3600 * 1'000'000'000'000;

// Throws "PLACE: FIELD: expected EXPECTED, found FOUND" as ConfigError.
[[noreturn]] inline void fail_imported(std::string_view place, std::string_view field,
                                       std::string_view expected, std::string_view found) {
  throw ConfigError(std::string(place) + ": " + std::string(field) + (field.empty() ? "" : ": ") +
                    "expected " + std::string(expected) + ", found " + std::string(found));
}

// The whole of `text`, from 0 to `most`.
[[nodiscard]] inline std::optional<std::int64_t> imported_number(
    std::string_view text, std::int64_t max = std::numeric_limits<std::int64_t>::max()) {
  return text.starts_with('-') ? std::nullopt : parse_number(text, std::int64_t{0}, max);
}

// Cut at blanks and tabs.
[[nodiscard]] inline std::vector<std::string_view> imported_words(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  std::vector<std::string_view> words;
  std::size_t at = line.find_first_not_of(kBlanks);
  while (at != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

// Times of operations as they are read.
class ImportedTimes {
 public:
  // `count` of `unit`. Throws as fail_imported if all of them become too many.
  [[nodiscard]] SimTime add(std::int64_t count, SimTime unit, std::string_view place,
                            std::string_view field) {
    return add(
        count, unit, [&] { return std::string(place); }, field);
  }
  // `place()` is asked for only where it is needed.
  template <typename Place>
  requires std::invocable<Place>
  [[nodiscard]] SimTime add(std::int64_t count, SimTime unit, const Place& place,
                            std::string_view field) {
    const __int128 time = static_cast<__int128>(count) * unit.picoseconds();
    if (time + total_ > kMaxImportedTime) {
      fail_imported(place(), field, "operations of at most 50 days in all", std::to_string(count));
    }
    total_ += static_cast<std::int64_t>(time);
    return SimTime(static_cast<std::int64_t>(time));
  }

 private:
  std::int64_t total_ = 0;
};

}  // namespace trainyard
