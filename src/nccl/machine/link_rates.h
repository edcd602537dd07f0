// SPDX-License-Identifier: Apache-2.0
// The rates that NCCL believes links to have (NVIDIA/nccl, src/graph/topo.h, topo.cc).
#pragma once

#include <cstdint>
#include <string_view>

#include "nccl/types/types.h"
#include "topology/exchange/nccl_xml.h"

namespace trainyard::nccl {

enum class CpuArch : std::uint8_t { Unknown, X86, Arm, Power };
enum class CpuVendor : std::uint8_t { Unknown, Intel, Amd, Zhaoxin };

// The rate within one device, and the number that means "no limit".
inline constexpr float kLocalBandwidth = 5000.0F;

[[nodiscard]] CpuArch arch_of(const NcclCpu& cpu);
[[nodiscard]] CpuVendor vendor_of(const NcclCpu& cpu);

// GB/s between two sockets of a host; kLocalBandwidth for CPUs that NCCL does not know.
[[nodiscard]] float socket_bandwidth(const NcclCpu& cpu, Version version = kNewestVersion);
// GB/s of a PCIe link; of an unknown speed as generation 3, of width 0 as 16 lanes.
[[nodiscard]] float pcie_bandwidth(std::string_view link_speed, int link_width);

}  // namespace trainyard::nccl
