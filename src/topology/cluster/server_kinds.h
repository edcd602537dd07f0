// SPDX-License-Identifier: Apache-2.0
// Servers that are alike, so that what holds for one of them needs to be found out once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/ids.h"
#include "topology/cluster/cluster.h"
#include "topology/graph/switch_graph.h"

namespace trainyard {

// Alike: the same devices in the same order, joined in the same way, the same GPUs in use, links of
// equal rate into the same components of the fabric, and to like switches of an NVLink domain of
// several servers, whichever domain it is.
struct AlikeServers {
  ServerId first{};
  // Different from the first: the next one, and the last one.
  std::optional<ServerId> second = {};
  std::optional<ServerId> last = {};
  std::int64_t count = 0;
};

class ServerKinds {
 public:
  ServerKinds(const Cluster& cluster, const SwitchGraph& graph);

  // Returns the kinds in order of their first servers.
  [[nodiscard]] const std::vector<AlikeServers>& kinds() const { return kinds_; }
  // Index into kinds().
  [[nodiscard]] std::size_t kind_of(ServerId server) const {
    return kind_of_server_[server.value()];
  }
  // All nodes of a server, in order of id.
  [[nodiscard]] std::span<const NodeId> nodes_of(ServerId server) const {
    return nodes_.of(server.value());
  }
  // Returns those GPUs of the server that ranks use.
  [[nodiscard]] std::vector<NodeId> gpus_of(ServerId server) const;

 private:
  [[nodiscard]] std::vector<std::int64_t> signature(const Cluster& cluster,
                                                    const SwitchGraph& graph,
                                                    ServerId server) const;

  Lists<NodeId> nodes_;       // One list per server.
  std::vector<bool> in_use_;  // Indexed by node: true for a GPU of some rank.
  std::vector<AlikeServers> kinds_;
  std::vector<std::size_t> kind_of_server_;
};

}  // namespace trainyard
