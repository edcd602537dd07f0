// SPDX-License-Identifier: Apache-2.0
// Names a place in a text file.
#pragma once

namespace trainyard {

// Line and column both count from 1.
struct FilePlace {
  int line = 0;
  int column = 0;
};

}  // namespace trainyard
