// SPDX-License-Identifier: Apache-2.0
// A document written out again, with what was set and composed.
#pragma once

#include <string>

#include "sim/config.h"

namespace trainyard {

// YAML text that has the same values in the same order: mappings in block form, lists of scalars in
// one line. Comments, quotes and aliases of the file are gone. Everything counts as read.
[[nodiscard]] std::string yaml_text(const ConfigNode& node);

}  // namespace trainyard
