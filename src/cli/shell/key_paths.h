// SPDX-License-Identifier: Apache-2.0
// The keys of a file as --set names them, from the table of fields that reads the file.
#pragma once

#include <string>
#include <vector>

#include "sim/schema.h"

namespace trainyard {

struct KeyPath {
  std::string path;                     // "fabric.routing"; an item of a sequence is its first, 0.
  std::string text;                     // It says what the key means.
  std::vector<std::string> words = {};  // All values that it may have, if they are words.
  bool names_part = false;              // The value is the name of a part of the catalogue.
};

// Returns the paths in the order of the table. Keys that hold nothing but other keys, and free
// names, are left out.
[[nodiscard]] std::vector<KeyPath> key_paths(const Schema& schema);

}  // namespace trainyard
