// SPDX-License-Identifier: Apache-2.0
// The NICs of each node by the numbers that NCCL gives them (`dev` in its topology file), and the
// cables of each.
//
// Every port of a live NIC has a number; of the NICs that a plugin groups
// (nccl/machine/nic_groups.h) the first has those of all. Unless they are kept apart
// (NCCL_NET_MERGE_LEVEL=LOC), the ports of one adapter are one device, known by the number of the
// first, and every connection has a queue pair on each port, among which its data are divided
// evenly (NVIDIA/nccl, src/transport/net_ib).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "nccl/types/environment.h"
#include "network/contract/network.h"
#include "sim/ids.h"
#include "topology/graph/topology.h"

namespace trainyard::nccl {

// Ports of one adapter that are used as one NIC (src/transport/net_ib: NCCL_IB_MAX_DEVS_PER_NIC).
inline constexpr int kMaxMergedPorts = 4;

// One NIC as NCCL sees it: some ports of an adapter, or the first of a group that it represents.
struct NicDevice {
  NodeId nic{};
  int first_port = 0;
  int ports = 1;
  [[nodiscard]] bool operator==(const NicDevice&) const = default;
};

// Returns whether the ports of an adapter are one NIC. Sockets cannot be merged.
[[nodiscard]] bool merges_ports(const Environment& environment, Version version = kNewestVersion);

class NicDevices {
 public:
  // `servers`: of each node, in order; `kinds`: equal for nodes whose servers are alike. `topology`
  // must outlive the object.
  NicDevices(const Topology& topology, const std::vector<std::vector<ServerId>>& servers,
             const std::vector<int>& kinds, bool merges);

  // The device of this number, which must be that of one.
  [[nodiscard]] const NicDevice& device(int node, int number) const;
  // Returns the devices that a NIC is, or is part of.
  [[nodiscard]] std::vector<NicDevice> devices_of(NodeId nic) const;
  // NICs that NCCL sees as one. The first represents all.
  [[nodiscard]] std::vector<NodeId> group_of(NodeId nic) const;
  // One for each cable, or NIC of a group, that carries a part of what goes from one device to the
  // other.
  [[nodiscard]] std::vector<ConnectionSpec> queue_pairs(const NicDevice& from, const NicDevice& to,
                                                        std::uint32_t label) const;

 private:
  struct Lane {
    NodeId nic{};
    std::optional<std::uint32_t> cable = {};  // Cable of a NIC of several ports: as NicTurns count.
  };

  void add(const std::vector<NodeId>& nics, const std::vector<std::vector<int>>* groups, int node);
  [[nodiscard]] int ports_of(NodeId nic) const;
  [[nodiscard]] std::vector<Lane> lanes(const NicDevice& device) const;

  const Topology& topology_;
  bool merges_;
  std::vector<std::vector<std::optional<NicDevice>>> numbers_;  // Indexed by node.
  std::map<NodeId, std::vector<NodeId>> groups_;                // Groups by each of their NICs.
};

}  // namespace trainyard::nccl
