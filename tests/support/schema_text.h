// SPDX-License-Identifier: Apache-2.0
// Writes the schema of a kind of file for editors and for the docs.
#pragma once

#include <string>
#include <string_view>

#include "sim/schema.h"

namespace trainyard {

// Returns the schema as a JSON Schema document (draft 7), which ends with a newline.
[[nodiscard]] std::string to_json(const Schema& schema, std::string_view title);
// Returns a Markdown table: a row of path, need and meaning for each key and what is below it.
[[nodiscard]] std::string to_markdown(const Schema& schema);

}  // namespace trainyard
