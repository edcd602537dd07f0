// SPDX-License-Identifier: Apache-2.0
// The program answers shells and packages: which words may come next (--complete), a script that
// makes a shell ask so (--completion) and manual pages (--man).
#pragma once

#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "cli/common/option_table.h"

namespace trainyard {

// Answers if the first argument is one of these, and returns whether it was. `version`:
// "trainyard 0.1.0". Throws ConfigError for an unknown shell or page.
bool answer_shell(std::span<const Command> commands, std::string_view version,
                  std::span<const std::string> arguments, std::ostream& out);

}  // namespace trainyard
