// SPDX-License-Identifier: Apache-2.0
// The keys of a cluster as its file has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/config.h"
#include "sim/fields.h"
#include "topology/cluster/faults.h"
#include "topology/fabric/fabric.h"
#include "topology/server/server_keys.h"

namespace trainyard {

inline constexpr std::int64_t kMaxServers = 1'000'000;

// Servers that are alike.
struct ServerGroupKeys {
  std::optional<ConfigNode> node = {};
  int count = 0;
  ServerKeys server = {};
};

struct ClusterKeys {
  Catalogue* catalogue = nullptr;       // Null where nothing is read.
  std::optional<ConfigNode> size = {};  // Where errors about the number of servers point.
  std::string name = {};
  std::vector<ServerGroupKeys> groups = {};
  std::optional<FabricKeys> fabric = {};
  std::vector<Fault> faults = {};
};

void cluster_fields(Fields& fields, ClusterKeys& keys);

}  // namespace trainyard
