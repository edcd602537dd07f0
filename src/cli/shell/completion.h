// SPDX-License-Identifier: Apache-2.0
// What may come next on a command line, from the option tables. Shells ask the program while a line
// is typed (shell.h), so that each needs a few lines alone and all offer the same.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/option_table.h"

namespace trainyard {

// One of the words that may stand where the last one is typed. One that ends with a dot, "=", "@"
// or "," goes on without a space.
struct Candidate {
  std::string text;
  std::string help = {};  // In one line, perhaps empty.
};

// The options of the program itself, "--version" among them.
[[nodiscard]] const Command& program_options();

// What begins as the last of `words` does, after the words before it, which begin behind the name
// of the program. Bash breaks words at "=": where such a piece stands alone, it is joined to its
// neighbours, and candidates lack what is before the last piece. Options that are given already,
// and do not repeat, are left out. Nothing where only a file or a number may follow.
// Throws ConfigError if the configs are missing.
[[nodiscard]] std::vector<Candidate> complete(std::span<const Command> commands,
                                              std::span<const std::string> words);

}  // namespace trainyard
