// SPDX-License-Identifier: Apache-2.0
// Switches in tiers: servers below leaves, leaves below spines, spines below cores.
//
// Four templates. `single-switch`: every NIC on one switch. `clos`: whole servers below each leaf.
// `rail-optimised`: NIC j of each server below leaf j of its group of servers. Both have every leaf
// joined to every spine or, in three tiers, to every spine of its pod, and spine i of each pod to
// all cores of group i, so that every pair of leaves has ways that go up and then down. `fat-tree`:
// the k-ary fat tree of Al-Fares et al. (A scalable, commodity data center network architecture,
// 2008), which is the same with all numbers set by k. topology/fabric/clos_size.h finds the
// numbers.
//
// The ports of one NIC may go to planes, which are separate copies of all this, and in each plane
// to several leaves (dual ToR) instead of one.
#pragma once

#include <memory>
#include <vector>

#include "topology/fabric/fabric.h"

namespace trainyard {

// The traits that tell the four templates apart.
struct ClosForm {
  bool rails = false;        // NIC j of each server goes to leaf j of its group.
  bool is_single = false;    // One switch.
  bool is_fat_tree = false;  // k sets all numbers.
};

// All numbers of switches are those of one plane.
struct ClosSpec {
  bool rails = false;
  int planes = 1;
  int tors = 1;              // Leaves that the ports of one NIC go to.
  int tiers = 1;             // 1 to 3.
  int leaves_per_group = 1;  // Groups of servers have the same leaves.
  int leaves = 0;
  int servers_per_leaf = 0;  // Servers on the fullest leaf.
  int ports_per_leaf = 0;    // Ports down, in use, of the fullest leaf.
  int uplinks = 0;           // Uplinks of one leaf; a multiple of the spines that it sees.
  int pods = 1;
  int leaves_per_pod = 0;  // The last pod may have fewer.
  int spines = 0;          // Spines of all pods together, equally many each.
  int spine_uplinks = 0;   // Uplinks of one spine; a multiple of the cores that it sees.
  int cores = 0;           // In as many groups as a pod has spines.
  SwitchSpec leaf = {};
  SwitchSpec spine = {};
  SwitchSpec core = {};
  std::vector<int> group_of_server = {};
  std::vector<LinkSpec> host_links = {};  // One port, by server.
  LinkSpec spine_link = {};
  LinkSpec core_link = {};

  [[nodiscard]] int spines_per_pod() const { return spines / pods; }
  // Returns the cores of one group.
  [[nodiscard]] int cores_per_spine() const { return cores / spines_per_pod(); }
};

void clos_fields(Fields& fields, FabricKeys& keys, const ClosForm& form);

[[nodiscard]] ClosSpec read_clos_spec(const FabricContext& context, const ClosForm& form);

[[nodiscard]] std::unique_ptr<Fabric> read_clos(const FabricContext& context, const ClosForm& form);

}  // namespace trainyard
