// SPDX-License-Identifier: Apache-2.0
// The words that OptionTraits::names stands for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/common/option_table.h"
#include "cli/shell/completion.h"

namespace trainyard {

// Returns the words of these lists that may be the value `typed` of an option of `command`: "clusters" and
// other folders of configs; "parts", "part-kinds", "gpus" and the other kinds; "nccl-variables";
// "cluster-keys", with those of a workload where the command has one, and "traffic-keys". Of keys
// only the next piece of the path, and after "=" the values that are words. Throws ConfigError if
// the configs are missing.
[[nodiscard]] std::vector<NextWord> named_values(const Command& command, std::string_view lists,
                                                 std::string_view typed);

}  // namespace trainyard
