// SPDX-License-Identifier: Apache-2.0
// The first line of every crash.
#pragma once

#include <string_view>

namespace trainyard {

// Says what to send to whom, with a line break at the end. A CHECK that fails prints it before its
// own line (sim/check.h).
[[nodiscard]] std::string_view crash_advice();

}  // namespace trainyard
