// SPDX-License-Identifier: Apache-2.0
// Where the tests find what they read and run. Only paths.cpp is compiled with the paths of this
// checkout, so that a compiler cache serves every checkout.
#pragma once

#include <filesystem>
#include <string>

namespace trainyard {

// The root of the checkout.
[[nodiscard]] const std::filesystem::path& source_dir();
// The built program.
[[nodiscard]] const std::string& program_path();

}  // namespace trainyard
