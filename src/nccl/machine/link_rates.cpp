// SPDX-License-Identifier: Apache-2.0
#include "nccl/machine/link_rates.h"

#include <array>
#include <string>
#include <utility>

#include "nccl/types/release.h"

namespace trainyard::nccl {

CpuArch arch_of(const NcclCpu& cpu) {
  const std::string arch = cpu.arch.value_or("");
  return arch == "x86_64"  ? CpuArch::X86
         : arch == "arm64" ? CpuArch::Arm
         : arch == "ppc64" ? CpuArch::Power
                           : CpuArch::Unknown;
}

CpuVendor vendor_of(const NcclCpu& cpu) {
  if (arch_of(cpu) != CpuArch::X86) {
    return CpuVendor::Unknown;
  }
  const std::string vendor = cpu.vendor.value_or("");
  return vendor == "GenuineIntel"                               ? CpuVendor::Intel
         : vendor == "AuthenticAMD"                             ? CpuVendor::Amd
         : vendor == "CentaurHauls" || vendor == "  Shanghai  " ? CpuVendor::Zhaoxin
                                                                : CpuVendor::Unknown;
}

// NVIDIA/nccl, src/graph/topo.cc: ncclTopoGetInterCpuBw, and the constants of topo.h.
float socket_bandwidth(const NcclCpu& cpu, Version version) {
  const Release& rules = release(version);
  const CpuArch arch = arch_of(cpu);
  const CpuVendor vendor = vendor_of(cpu);
  const int family = cpu.familyid.value_or(0);
  const int model = cpu.modelid.value_or(0);
  if (arch == CpuArch::Power) {
    return 32.0F;
  }
  if (arch == CpuArch::Arm) {
    return 6.0F;
  }
  if (vendor == CpuVendor::Amd) {
    return rules.knows_amd_sockets ? 16.0F : kLocalBandwidth;
  }
  if (vendor == CpuVendor::Zhaoxin) {
    return family == 7 && model == 0x5B ? 9.0F : 6.0F;
  }
  if (vendor == CpuVendor::Intel) {
    // Emerald Rapids and later, Sapphire Rapids, Skylake, Broadwell and others.
    constexpr std::array<std::pair<int, float>, 2> kNewer{{{0xCF, 40.0F}, {0x8F, 22.0F}}};
    constexpr int kSkylake = 0x55;
    for (const auto& [min, bandwidth] : kNewer) {
      if (rules.knows_newer_intel_sockets && family == 6 && model >= min) {
        return bandwidth;
      }
    }
    if (family == 6 && model >= kSkylake) {
      return rules.skylake_sockets;
    }
    return 6.0F;
  }
  return kLocalBandwidth;
}

float pcie_bandwidth(std::string_view link_speed, int link_width) {
  // Units of 100 Mb/s for each lane, by how the name begins: Linux up to 5.6, and later. NCCL knows
  // no others, such as "32.0 GT/s" or "64 GT/s" (topo.cc: kvDictPciGen).
  constexpr std::array<std::pair<std::string_view, int>, 10> kGenerations{
      {{"2.5 GT/s", 15},
       {"5 GT/s", 30},
       {"8 GT/s", 60},
       {"16 GT/s", 120},
       {"32 GT/s", 240},
       {"5.0 GT/s PCIe", 30},
       {"8.0 GT/s PCIe", 60},
       {"16.0 GT/s PCIe", 120},
       {"32.0 GT/s PCIe", 240},
       {"64.0 GT/s PCIe", 480}}};
  constexpr int kUnknown = 60;
  int rate = kUnknown;
  for (const auto& [name, value] : kGenerations) {
    if (link_speed.starts_with(name)) {
      rate = value;
      break;
    }
  }
  const int lanes = link_width == 0 ? 16 : link_width;
  return static_cast<float>(lanes * rate / 80.0);
}

}  // namespace trainyard::nccl
