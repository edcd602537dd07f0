// SPDX-License-Identifier: Apache-2.0
// The catalogue of parts that is shipped, read once.
#pragma once

#include <filesystem>

#include "hw/catalogue.h"

namespace trainyard {

inline const Catalogue& shipped_catalogue() {
  static const Catalogue instance =
      Catalogue::load(std::filesystem::path(TRAINYARD_SOURCE_DIR) / "configs/hardware");
  return instance;
}

}  // namespace trainyard
