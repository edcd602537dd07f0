// SPDX-License-Identifier: Apache-2.0
#include "sim/schema.h"

#include <algorithm>

namespace trainyard {

Schema& Schema::add(std::string_view key, std::string_view text, bool is_required) {
  is_map = true;
  const auto known =
      std::find_if(keys.begin(), keys.end(), [&](const SchemaKey& one) { return one.name == key; });
  if (known != keys.end()) {
    known->is_required = known->is_required || is_required;
    known->value = {};
    return known->value;
  }
  return keys.emplace_back(SchemaKey{std::string(key), std::string(text), is_required}).value;
}

}  // namespace trainyard
