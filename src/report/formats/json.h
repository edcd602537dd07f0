// SPDX-License-Identifier: Apache-2.0
// JSON values of cells and tables. Only for .cpp files: the JSON library is large.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "report/formats/table.h"

namespace trainyard {

// Keeps the order in which keys are added.
using Json = nlohmann::ordered_json;

[[nodiscard]] Json to_json(const CellValue& value);
// An array of objects, keys in column order.
[[nodiscard]] Json to_json(const Table& table);
// Indented by two, ends with a newline. Bytes that are not UTF-8 are replaced; a number that is not
// finite is null.
[[nodiscard]] std::string to_text(const Json& json);

}  // namespace trainyard
