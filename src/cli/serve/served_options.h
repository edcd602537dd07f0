// SPDX-License-Identifier: Apache-2.0
// A page makes its controls of the tables of commands and options, the names of configs and the
// files of the work folder.
#pragma once

#include <string>
#include <vector>

namespace trainyard {

// JSON: `commands` with their arguments and options, `names` by option, `settings` of --set that
// have a short word, `files`. Throws ConfigError where there are no configs.
[[nodiscard]] std::string served_options(const std::vector<std::string>& files);

}  // namespace trainyard
