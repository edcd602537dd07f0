// SPDX-License-Identifier: Apache-2.0
// What readers say of files with one mistake each, and of damaged ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace trainyard {

// The error of a reader for this text, which its messages call `name`, or "no error".
using ErrorOf = std::function<std::string(const std::string& text, const std::string& name)>;

// For each NAME.yaml in a folder of tests/golden, at least so many: its error is the one line in
// NAME.expected, which UPDATE_GOLDEN=1 rewrites.
void require_golden_errors(const std::filesystem::path& folder, std::size_t min,
                           const ErrorOf& error_of);

// `right` has no error; damaged at random by that many seeds it is read or refused in one line.
// How often it was refused.
[[nodiscard]] int refused_damage(const std::string& right, std::string_view likely,
                                 std::uint64_t seeds, const ErrorOf& error_of);

}  // namespace trainyard
