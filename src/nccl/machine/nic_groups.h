// SPDX-License-Identifier: Apache-2.0
// NICs that a network plugin gives to NCCL as one device of their summed speed, over which it
// spreads the data of every connection (ServerTraits::grouped_nics).
#pragma once

#include <vector>

#include "topology/exchange/server_outline.h"

namespace trainyard::nccl {

// The NICs of each device, by index; devices in the order of their first NIC. Each GPU asks for one
// device out of the NICs that are nearest to it, and GPUs that are as near to the same NICs divide
// them among each other, the first devices one larger where it does not come out even. A NIC that
// no GPU asks for is a device of its own (aws/aws-ofi-nccl, src/nccl_ofi_topo.cpp).
[[nodiscard]] std::vector<std::vector<int>> nic_groups(const ServerOutline& server);

}  // namespace trainyard::nccl
