// SPDX-License-Identifier: Apache-2.0
#include "support/paths.h"

namespace trainyard {

const std::filesystem::path& source_dir() {
  static const std::filesystem::path folder = TRAINYARD_SOURCE_DIR;
  return folder;
}

const std::string& program_path() {
  static const std::string file = TRAINYARD_PROGRAM;
  return file;
}

}  // namespace trainyard
