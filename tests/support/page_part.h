// SPDX-License-Identifier: Apache-2.0
// Parts of pages that tests write.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/catch.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {

// Requires that the text is between two marks of a page of this checkout, or writes it there
// (UPDATE_GOLDEN=1).
inline void hold_part(const std::string& page, const std::string& begin, const std::string& end,
                      const std::string& text) {
  const std::filesystem::path file = source_dir() / page;
  const std::string before = read_text_file(file);
  const std::size_t first = before.find(begin);
  const std::size_t last = before.find(end);
  REQUIRE(first != std::string::npos);
  REQUIRE(last != std::string::npos);
  const std::string after = before.substr(0, first) + begin + text + before.substr(last);
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(file) << after;
  }
  REQUIRE(read_text_file(file) == after);
}

}  // namespace trainyard
