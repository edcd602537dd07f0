// SPDX-License-Identifier: Apache-2.0
// The option tables say which words may come next on a command line. Shells ask the program while a
// line is typed (shell.h), so that each needs a few lines alone and all offer the same.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/option_table.h"

namespace trainyard {

// A word that may stand where the last one is typed. If it ends with a dot, "=", "@" or ",", the
// line goes on without a space.
struct NextWord {
  std::string text;
  std::string help = {};  // In one line, perhaps empty.
};

// The options of the program itself, "--version" among them.
[[nodiscard]] const Command& program_options();

// Returns the words that begin as the last of `words` does and may stand in its place. The others
// are those between the name of the program and it. Bash breaks words at "=": where such a piece
// stands alone, it is joined to its neighbours, and what is returned lacks what is before the last
// piece. Options that are given already, and do not repeat, are left out. Nothing is returned where
// only a file or a number may follow. Throws ConfigError if the configs are missing.
[[nodiscard]] std::vector<NextWord> complete(std::span<const Command> commands,
                                             std::span<const std::string> words);

}  // namespace trainyard
