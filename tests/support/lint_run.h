// SPDX-License-Identifier: Apache-2.0
// What the linter says, for tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/lint/lint.h"

namespace trainyard {

// "SEVERITY: MESSAGE" of the findings with this code.
[[nodiscard]] inline std::vector<std::string> findings_of(const Cluster& cluster,
                                                          std::string_view code) {
  std::vector<std::string> lines;
  for (const Finding& finding : lint(cluster)) {
    if (finding.code == code) {
      lines.push_back(std::string(to_string(finding.severity)) + ": " + finding.message);
    }
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace trainyard
