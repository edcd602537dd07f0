// SPDX-License-Identifier: Apache-2.0
// A cluster file with its changes, before anything is built of it.
#pragma once

#include <filesystem>

#include "sim/config.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// The file with settings and nodes in it, and each server in the place of its name. Throws
// ConfigError.
[[nodiscard]] ConfigDocument cluster_document(const std::filesystem::path& file,
                                              const Catalogue& catalogue,
                                              const ClusterOverrides& overrides);

}  // namespace trainyard
