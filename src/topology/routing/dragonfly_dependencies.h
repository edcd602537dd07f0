// SPDX-License-Identifier: Apache-2.0
// The buffer dependencies that a dragonfly's channels allow, in a graph of linear size: from each
// link to hubs of the switch where it ends, from hubs to the links that begin there.
//
// In order of what waits for what: local and global links of channel 0, then those of channel 1,
// and so on; so there is no cycle as long as there are as many channels as the rules ask for.
#pragma once

#include <cstdint>
#include <span>

#include "topology/graph/dependency_graph.h"
#include "topology/graph/topology.h"

namespace trainyard {

struct DragonflyRules {
  bool has_spines = false;
  int channels = 1;     // Channels that there are; the last represents all above.
  int global_hops = 1;  // Global hops of the longest path.
  bool misroutes = false;
  bool is_whole = true;  // No link is missing; otherwise two local hops may stand for one.
};

class DragonflyDependencies {
 public:
  DragonflyDependencies(DependencyGraph& graph, const DragonflyRules& rules,
                        std::uint32_t switches);

  void add_endpoints(std::uint32_t at, std::span<const LinkId> ups, std::span<const LinkId> downs);
  // A link between switches; `to_leaf` in a full mesh too.
  void add_link(LinkId link, std::uint32_t from, std::uint32_t to, bool is_local, bool to_leaf);

 private:
  enum class Hub : std::uint8_t { Local, Global };

  [[nodiscard]] std::uint32_t hub(Hub kind, std::uint32_t at, int count) const;
  [[nodiscard]] std::uint32_t end(std::uint32_t at) const;
  [[nodiscard]] std::uint32_t buffer(LinkId link, int count) const;
  void add_local(LinkId link, std::uint32_t to, int count, bool to_leaf);
  // If routes have that many counts.
  void add_turn(LinkId link, int count, Hub kind, std::uint32_t at, int next_count);

  DependencyGraph& graph_;
  DragonflyRules rules_;
  int counts_;  // Channels that the rules ask for.
  std::uint32_t first_hub_;
};

}  // namespace trainyard
