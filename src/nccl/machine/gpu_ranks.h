// SPDX-License-Identifier: Apache-2.0
// The devices of topology files, and which GPU is which rank.
#pragma once

#include <map>
#include <vector>

#include "topology/exchange/nccl_xml.h"

namespace trainyard::nccl {

// Calls visit(device) for all PCI devices, each before those below it, in the order of the file.
template <typename Devices, typename Visit>
void visit_devices_below(Devices& devices, const Visit& visit) {
  for (auto& device : devices) {
    visit(device);
    visit_devices_below(device.pcis, visit);
  }
}
template <typename System, typename Visit>
void visit_devices(System& system, const Visit& visit) {
  for (auto& cpu : system.cpus) {
    visit_devices_below(cpu.pcis, visit);
  }
}

// Numbers GPUs from zero, host by host; on a host in the order of the attribute `rank` where every
// GPU has one of its own, else in the order of the file. The map is for look-ups: its order is that
// of addresses.
[[nodiscard]] std::map<const NcclGpu*, int> number_gpus(const std::vector<NcclSystem>& servers);

}  // namespace trainyard::nccl
