// SPDX-License-Identifier: Apache-2.0
// The schemas of the files of the catalogue, for editors.
#pragma once

#include <map>
#include <string>

#include "sim/schema.h"

namespace trainyard {

// Returns the schemas by the names of the files: "gpus" for gpus.yaml.
[[nodiscard]] std::map<std::string, Schema> catalogue_schemas();

}  // namespace trainyard
