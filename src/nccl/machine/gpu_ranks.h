// SPDX-License-Identifier: Apache-2.0
// Maps which GPU of a topology file is which rank.
#pragma once

#include <map>
#include <vector>

#include "topology/exchange/nccl_xml.h"

namespace trainyard::nccl {

// Numbers GPUs from zero, host by host; on a host in the order of the attribute `rank` where every
// GPU has one of its own, else in the order of the file. The map is for look-ups: its order is that
// of addresses.
[[nodiscard]] std::map<const NcclGpu*, int> number_gpus(const std::vector<NcclSystem>& servers);

}  // namespace trainyard::nccl
