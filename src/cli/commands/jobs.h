// SPDX-License-Identifier: Apache-2.0
// The servers of a job of `trainyard jobs`.
#pragma once

#include <string_view>
#include <vector>

namespace trainyard {

// "0-3,8": {0, 1, 2, 3, 8}; nothing for anything else. Ranges rise; numbers are at most 999,999.
[[nodiscard]] std::vector<int> parse_servers(std::string_view text);

}  // namespace trainyard
