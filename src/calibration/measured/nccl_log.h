// SPDX-License-Identifier: Apache-2.0
// Reads the text output of nccl-tests (all_reduce_perf and its siblings).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/measured/measurement.h"

namespace trainyard {

// Returns whether the text holds the header of an nccl-tests table.
[[nodiscard]] bool is_nccl_log(std::string_view text);

// Reads one table; throws ConfigError naming `name` and the line. With `damage`, a row that is
// wrong and what stands where nothing should are left out, a line there for each, "NAME:LINE: ...";
// it still throws where no row is left.
[[nodiscard]] MeasuredTable parse_nccl_log(std::string_view text, const std::string& name,
                                           std::vector<std::string>* damage = nullptr);

// The part of a text that has one table.
struct LogRunText {
  std::size_t first_line = 1;
  std::size_t header_line = 0;  // Line that begins its table.
  std::string_view text;
  // Returns the text behind as many empty lines, so that errors name lines of the whole file.
  [[nodiscard]] std::string padded() const;
};
// Cuts a log behind the end of a run, and where another one begins. Parts without a table are left
// out.
[[nodiscard]] std::vector<LogRunText> split_runs(std::string_view text);

// Returns why the rows are not those of a run of several ranks, "NAME:LINE: ...": each process ran
// alone, or several programs printed at once. Nothing if they may be.
[[nodiscard]] std::optional<std::string> why_separate(std::string_view text,
                                                      const std::string& name);
}  // namespace trainyard
