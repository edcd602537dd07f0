// SPDX-License-Identifier: Apache-2.0
// One server of a topology for other programs: as a tree, as NCCL's topology file, as the matrix of
// nvidia-smi.
#pragma once

#include "hw/parts/catalogue.h"
#include "topology/exchange/nccl_xml.h"
#include "topology/exchange/server_outline.h"
#include "topology/exchange/smi_matrix.h"
#include "topology/graph/topology.h"

namespace trainyard {

// Returns whether any NIC is plugged into a fabric or into another NIC.
[[nodiscard]] bool has_network(const Topology& topology);
// Returns whether software finds the NIC of use: it is plugged in at both ends, into its server
// and, where there is a network, into that (NVIDIA/nccl, src/transport/net_ib: ports that are not
// active are passed over).
[[nodiscard]] bool is_live_nic(const Topology& topology, NodeId nic, bool network);

// GPUs and live NICs are numbered in the order of the tree. Throws ConfigError for GPUs of several
// parts, with which neither format below can be read back, and for GPUs and NICs that a fault cuts
// off from all CPUs, for which these formats have no place.
[[nodiscard]] ServerOutline server_outline(const Topology& topology, ServerId server);

// Bus ids follow the order of the tree: 0000:01:00.0, 0000:02:00.0, ... The NVSwitches are one
// target with the bus id after the last; NCCL makes one of them in any case. Facts that nobody
// stated about the machine (affinity, host hash, names and guids of adapters but "nic0" and a
// number) is left out. Throws ConfigError if the file would have more elements than NCCL reads.
[[nodiscard]] NcclSystem to_nccl_xml(const ServerOutline& tree, const Catalogue& catalogue);

// Throws ConfigError for GPUs that are not NVIDIA's: nvidia-smi has no way to print them.
[[nodiscard]] SmiMatrix to_smi_matrix(const ServerOutline& tree, const Catalogue& catalogue);

// The generation of a PCIe link of the catalogue in the words of Linux and NCCL: "16.0 GT/s PCIe".
[[nodiscard]] std::string link_speed_text(const LinkModel& link);

}  // namespace trainyard
