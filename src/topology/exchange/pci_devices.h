// SPDX-License-Identifier: Apache-2.0
// The elements `pci` of a topology file say this about their devices (nccl_import.cpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hw/parts/catalogue.h"
#include "topology/exchange/nccl_xml.h"

namespace trainyard {

[[nodiscard]] bool has_class(const NcclPci& pci, std::string_view prefix);

// A device is known by its element, else by the classes by which NCCL and RCCL know devices.
[[nodiscard]] bool is_gpu(const NcclPci& pci);
[[nodiscard]] bool is_nic(const NcclPci& pci);

// "10de:2330"
[[nodiscard]] std::optional<std::string> pci_id(const NcclPci& pci);

// The maker of a GPU by its vendor, as the titles of the catalogue begin; empty if it is not known.
[[nodiscard]] std::string_view maker_of(const NcclPci& pci);

// "0000:07:00.1" without the function: ports of one card share the rest.
[[nodiscard]] std::string card_of(const std::string& bus_id);

// Hypervisors leave the speed empty.
[[nodiscard]] bool says_speed(const NcclPci& pci);

// The PCIe link of the catalogue that a device says it has, or null if there is none of that rate.
[[nodiscard]] const LinkModel* stated_link(const NcclPci& pci, const Catalogue& catalogue);

}  // namespace trainyard
