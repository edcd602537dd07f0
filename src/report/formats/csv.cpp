// SPDX-License-Identifier: Apache-2.0
#include "report/formats/csv.h"

#include <spdlog/fmt/fmt.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "sim/numbers.h"

namespace trainyard {

std::vector<std::vector<std::string>> parse_csv(std::string_view text) {
  std::vector<std::vector<std::string>> records;
  std::vector<std::string> fields;
  std::string field;
  bool is_quoted = false;
  bool has_any = false;  // Set once the record has a field.
  for (std::size_t index = 0; index < text.size(); ++index) {
    const char character = text[index];
    if (is_quoted) {
      if (character != '"') {
        field += character;
      } else if (index + 1 < text.size() && text[index + 1] == '"') {
        field += '"';
        ++index;
      } else {
        is_quoted = false;
      }
      continue;
    }
    has_any = true;
    if (character == '"') {
      is_quoted = true;
    } else if (character == ',') {
      fields.push_back(std::exchange(field, {}));
    } else if (character == '\n') {
      fields.push_back(std::exchange(field, {}));
      records.push_back(std::exchange(fields, {}));
      has_any = false;
    } else {
      field += character;
    }
  }
  if (has_any) {
    fields.push_back(std::move(field));
    records.push_back(std::move(fields));
  }
  return records;
}

Cell typed_cell(const std::string& field) {
  if (field.empty()) {
    return Cell::none();
  }
  if (field == "true" || field == "false") {
    return {field, field == "true"};
  }
  if (const auto whole = parse_number<std::int64_t>(field);
      whole && std::to_string(*whole) == field) {
    return Cell::of(*whole);
  }
  if (const auto number = parse_number<double>(field);
      number && fmt::format("{}", *number) == field) {
    return {fmt::format("{:.6g}", *number), *number};
  }
  return Cell::of(field);
}

}  // namespace trainyard
