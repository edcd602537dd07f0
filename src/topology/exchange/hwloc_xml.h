// SPDX-License-Identifier: Apache-2.0
// The machine that `lstopo --of xml` describes (hwloc, versions 1 to 3 of its format), as if NCCL
// had written it: sockets, PCI bridges, GPUs, NICs and the NVLinks between them.
#pragma once

#include <string>
#include <string_view>

#include "topology/exchange/nccl_xml.h"

namespace trainyard {

// Only GPUs of NVIDIA, AMD and Intel's Gaudi stand as GPUs, not the displays of boards; of the NICs
// those with RDMA where there are any. Elements that say nothing about these are passed over.
// hwloc states a rate instead of generation and width: for a bridge it is read as one of 16 lanes
// where it is one, for devices the part says it. Throws ConfigError "FILE:LINE:COLUMN: ...".
[[nodiscard]] NcclSystem read_hwloc_xml(std::string_view text, const std::string& name);

}  // namespace trainyard
