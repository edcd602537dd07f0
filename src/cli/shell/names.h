// SPDX-License-Identifier: Apache-2.0
// The words that OptionTraits::names stands for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/common/option_table.h"
#include "cli/shell/completion.h"

namespace trainyard {

// Returns the words of these lists that may be the value `typed` of an option of `command`. A list
// is a folder of configs ("clusters"); "parts", "part-kinds", "gpus" or another kind; "nccl-
// variables"; "traffic-keys"; or "cluster-keys", with the keys of a workload where the command has
// one. Of keys only the next piece of the path is returned, and after "=" the values, where they
// are words. Throws ConfigError if the configs are missing.
[[nodiscard]] std::vector<NextWord> named_values(const Command& command, std::string_view lists,
                                                 std::string_view typed);

}  // namespace trainyard
