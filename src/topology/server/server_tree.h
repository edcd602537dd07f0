// SPDX-License-Identifier: Apache-2.0
// Leads from GPUs and NICs over PCIe switches to the sockets of a server.
#pragma once

#include "topology/server/parts.h"
#include "topology/server/server_keys.h"

namespace trainyard {

// Follows either `tree`, which says for each socket what hangs off it, or the numbers `gpus`,
// `nics`, `pcie_switches` and `sockets`, which stand for an even tree: GPU g of G hangs off PCIe
// switch floor(g S / G) of S, a NIC likewise, switch s off socket floor(s K / S) of K. Fills the
// devices of `spec` and their numbers.
void read_server_tree(const ServerKeys& keys, PartLog& parts, ServerSpec& spec);

}  // namespace trainyard
