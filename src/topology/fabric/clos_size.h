// SPDX-License-Identifier: Apache-2.0
// The numbers of a Clos network from port counts.
//
// With P ports of a switch and oversubscription s (ports down over ports up), it has at most
// floor(P s / (1 + s)) ports down. Servers go below leaves in order, as many as fit. A leaf gets as
// many ports up as those in use need. There are as few spines as have the ports and let every leaf
// spread its uplinks evenly. If there are more leaves than ports of a spine, leaves are cut into
// pods of as many as a spine has ports down, each with spines of its own, and spine i of all pods
// meets in group i of the cores, of which there are as few as have the ports and let every spine
// spread its uplinks evenly. This gives the counts of NVIDIA's SuperPOD reference architectures
// (docs/inputs/clusters.md).
#pragma once

#include <string>
#include <string_view>

#include "topology/fabric/clos.h"

namespace trainyard {

class ClosSizer {
 public:
  // Reads how the ports of NICs are dealt; `spec` has its leaf.
  ClosSizer(const FabricContext& context, const ClosForm& form, ClosSpec& spec);

  // Groups of servers and their leaves.
  void place_servers();
  // Whether one leaf is not enough.
  [[nodiscard]] bool needs_spines() const;
  // Whether two tiers are not enough; `spec` has its spine.
  [[nodiscard]] bool needs_cores() const;
  void size_two_tiers();
  // `spec` has its core.
  void size_three_tiers();
  // All numbers of the k-ary fat tree, without reading any other.
  void size_fat_tree();

 private:
  void read_ports();
  // Where errors about `key` point.
  [[nodiscard]] ConfigNode place(std::string_view key) const;
  [[nodiscard]] int ports_on_leaf(const ServerSpec& server) const;
  // At most this many ports down, and servers, of a leaf.
  struct LeafLimit {
    int ports;
    int servers;
  };
  [[nodiscard]] LeafLimit leaf_limit() const;
  void fill_leaves(const LeafLimit& limit);
  [[noreturn]] void fail_size(int groups, const std::string& fabric) const;
  void size_uplinks();
  void size_spines(int ports_down);
  void size_spine_uplinks();
  void size_cores();
  void check_cables() const;

  const FabricContext& context_;
  const FabricKeys& keys_;
  ClosForm form_;
  ClosSpec& spec_;
  int servers_;
  int nics_ = 0;             // NICs of the server with most.
  bool equal_nics_ = false;  // All servers have so many.
};

}  // namespace trainyard
