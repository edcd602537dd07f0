// SPDX-License-Identifier: Apache-2.0
// Reads the text output of nccl-tests (all_reduce_perf and its siblings).
#pragma once

#include <cstddef>
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
}  // namespace trainyard
