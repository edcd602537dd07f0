// SPDX-License-Identifier: Apache-2.0
// Reads what render_csv() writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/formats/table.h"

namespace trainyard {

// The records of a CSV text as RFC 4180 has them: fields without their quotes. A last line that
// does not end is a record as well.
[[nodiscard]] std::vector<std::vector<std::string>> parse_csv(std::string_view text);

// A field with the type that it looks like: nothing, true or false, a number, or a text. Numbers
// are those that print again as they stand.
[[nodiscard]] Cell typed_cell(const std::string& field);

}  // namespace trainyard
