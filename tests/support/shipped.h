// SPDX-License-Identifier: Apache-2.0
// The catalogue of parts that is shipped, read once.
#pragma once

#include <filesystem>

#include "hw/parts/catalogue.h"
#include "support/paths.h"

namespace trainyard {

inline const Catalogue& shipped_catalogue() {
  static const Catalogue instance = Catalogue::load(source_dir() / "configs/hardware");
  return instance;
}

// The same for readers that may add parts to it.
inline Catalogue& open_catalogue() {
  static Catalogue instance = shipped_catalogue();
  return instance;
}

}  // namespace trainyard
