// SPDX-License-Identifier: Apache-2.0
// Reads the text output of nccl-tests (all_reduce_perf and its siblings).
#pragma once

#include <string>
#include <string_view>

#include "calibration/measurement.h"

namespace trainyard {

// Whether the text holds the header of an nccl-tests table.
[[nodiscard]] bool is_nccl_log(std::string_view text);

// Reads one table; throws ConfigError naming `name` and the line.
[[nodiscard]] MeasuredTable parse_nccl_log(std::string_view text, const std::string& name);

}  // namespace trainyard
