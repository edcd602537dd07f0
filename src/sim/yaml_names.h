// SPDX-License-Identifier: Apache-2.0
// Lists what a folder of YAML files offers by name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainyard {

// The names of the files NAME.yaml in a folder, in their order. None if it cannot be read.
[[nodiscard]] std::vector<std::string> yaml_names_in(const std::filesystem::path& folder);

}  // namespace trainyard
