// SPDX-License-Identifier: Apache-2.0
// Rules of the source tree are functions from source files to complaints, "file:line: what is
// wrong".
#pragma once

#include "support/catch.h"

#include <iostream>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/source_text.h"

namespace trainyard {

using Complaints = std::vector<std::string>;

// The files of this checkout.
[[nodiscard]] inline const std::vector<SourceFile>& source_tree() {
  static const std::vector<SourceFile> files = read_source_tree(source_dir());
  return files;
}

// Prints them, because Catch2 breaks long lines in the middle of a path, and fails if there are
// any.
inline void require_none(const Complaints& complaints) {
  for (const std::string& line : complaints) {
    std::cerr << line << "\n";
  }
  REQUIRE(complaints.empty());
}

}  // namespace trainyard
