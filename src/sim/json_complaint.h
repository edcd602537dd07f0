// SPDX-License-Identifier: Apache-2.0
// Refuses text that is not JSON.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace trainyard {

// Throws ConfigError "NAME:LINE:COLUMN: expected JSON, found "..."" with what is there, where
// `text` is what was parsed and `problem` what nlohmann::json threw, of any kind of its values.
[[noreturn]] void fail_json(const std::string& name, std::string_view text,
                            const std::exception& problem);

inline constexpr std::int64_t kMaxJsonLevels = 64;  // As YAML has.

// Throws ConfigError with the place where the text has more levels of lists and objects than that,
// as functions that walk JSON call themselves once a level. Looks at no more than brackets and
// quotes.
void check_json_depth(const std::string& name, std::string_view text);

}  // namespace trainyard
