// SPDX-License-Identifier: Apache-2.0
#include "sim/yaml_names.h"

#include <algorithm>
#include <system_error>

namespace trainyard {

std::vector<std::string> yaml_names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".yaml") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace trainyard
