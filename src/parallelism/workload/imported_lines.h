// SPDX-License-Identifier: Apache-2.0
// Reads a file of another tool line by line, without ever having all of it in memory.
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "parallelism/workload/imported_files.h"

namespace trainyard {

class ImportedLines {
 public:
  // `file` must outlive this.
  explicit ImportedLines(const ImportedFile& file);

  // Returns the next line without its end, until the next call; nothing after the last one. Throws
  // ConfigError where the file cannot be read.
  [[nodiscard]] std::optional<std::string_view> next();

 private:
  void read_on();

  const ImportedFile& file_;
  std::ifstream stream_;   // Open where the text is still on disc.
  std::string block_;      // The part of it that is in memory.
  std::string_view rest_;  // The end of that part, from the next line on.
};

}  // namespace trainyard
