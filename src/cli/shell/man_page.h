// SPDX-License-Identifier: Apache-2.0
// Manual pages from the option tables, for man and mandoc: text with the macros of man(7).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/option_table.h"

namespace trainyard {

// The page of a command or of a part of one.
struct ManPage {
  std::string name;  // "explain-step": the page is trainyard-explain-step.
  std::string summary;
  Command command;
};

// Returns the pages in the order of the commands, those of parts behind that of their command.
[[nodiscard]] std::vector<ManPage> man_pages(std::span<const Command> commands);

// The page trainyard(1), which lists the others. `version`: "trainyard 0.1.0".
[[nodiscard]] std::string program_man_page(std::span<const ManPage> pages,
                                           std::string_view version);
[[nodiscard]] std::string to_roff(const ManPage& page, std::string_view version);

}  // namespace trainyard
