// SPDX-License-Identifier: Apache-2.0
// Leads from GPUs and NICs over PCIe switches to the sockets of a server.
#pragma once

#include "hw/parts/catalogue.h"
#include "sim/config.h"
#include "topology/server/parts.h"
#include "topology/server/server.h"

namespace trainyard {

// Reads either `tree`, which says for each socket what hangs off it, or the numbers `gpus`, `nics`,
// `pcie_switches` and `sockets`, which stand for an even tree: GPU g of G hangs off PCIe switch
// floor(g S / G) of S, a NIC likewise, switch s off socket floor(s K / S) of K. Fills the devices
// of `spec` and their numbers. `cpu` may be null.
void read_server_tree(const ConfigNode& node, const Catalogue& catalogue, const CpuModel* cpu,
                      PartLog& parts, ServerSpec& spec);

}  // namespace trainyard
