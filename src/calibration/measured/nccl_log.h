// SPDX-License-Identifier: Apache-2.0
// Reads the text output of nccl-tests (all_reduce_perf and its siblings).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/measured/measurement.h"

namespace trainyard {

// A message of nccl-tests about data that came out wrong.
struct WrongResult {
  std::size_t line = 0;  // Line of the log; 0 if it is about the whole log.
  std::string what;      // "#wrong is 17 at 1048576 B"
};

// Returns whether the text holds the header of an nccl-tests table.
[[nodiscard]] bool is_nccl_log(std::string_view text);

// Reads one table; throws ConfigError naming `name` and the line. With `damage`, a row that is
// wrong and what stands where nothing should are left out, a line there for each, "NAME:LINE: ...";
// it still throws where no row is left.
[[nodiscard]] MeasuredTable parse_nccl_log(std::string_view text, const std::string& name,
                                           std::vector<std::string>* damage = nullptr);
// Returns the wrong results of the same table: its rows, or what is said of the whole if it names
// none.
[[nodiscard]] std::vector<WrongResult> wrong_results_of(std::string_view text,
                                                        const std::string& name);

}  // namespace trainyard
