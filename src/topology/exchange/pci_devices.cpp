// SPDX-License-Identifier: Apache-2.0
#include "topology/exchange/pci_devices.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>

#include "sim/printable.h"
#include "topology/exchange/server_export.h"

namespace trainyard {

bool has_class(const NcclPci& pci, std::string_view prefix) {
  return pci.device_class && pci.device_class->starts_with(prefix);
}

bool is_gpu(const NcclPci& pci) {
  return !pci.gpus.empty() || has_class(pci, "0x03") || has_class(pci, "0x12");
}
bool is_nic(const NcclPci& pci) {
  return !is_gpu(pci) && (!pci.nics.empty() || has_class(pci, "0x02"));
}

std::optional<std::string> pci_id(const NcclPci& pci) {
  if (!pci.vendor || !pci.device) {
    return std::nullopt;
  }
  return lower_case(pci.vendor->substr(2) + ':' + pci.device->substr(2));
}

std::string_view maker_of(const NcclPci& pci) {
  const std::string vendor = lower_case(pci.vendor.value_or(""));
  return vendor == "0x10de"   ? "NVIDIA"
         : vendor == "0x1002" ? "AMD"
         : vendor == "0x1da3" ? "Intel"
                              : "";
}

std::string card_of(const std::string& bus_id) {
  return lower_case(bus_id.substr(0, bus_id.rfind('.')));
}

const LinkModel* stated_link(const NcclPci& pci, const Catalogue& catalogue) {
  if (!pci.link_speed) {
    return nullptr;
  }
  double transfers = 0.0;
  const char* end = pci.link_speed->data() + pci.link_speed->size();
  const auto result = std::from_chars(pci.link_speed->data(), end, transfers);
  // "8 GT/s", "16.0 GT/s PCIe"; anything else says nothing.
  const bool is_rate = result.ec == std::errc() && std::string_view(result.ptr, end) != "" &&
                       std::string_view(result.ptr, end).starts_with(" GT/s");
  if (!is_rate) {
    return nullptr;
  }
  for (const auto& [name, link] : catalogue.links()) {
    if (link.family == LinkFamily::Pcie &&
        link_speed_text(link) == fmt::format("{:.1f} GT/s PCIe", transfers)) {
      return &link;
    }
  }
  return nullptr;
}

bool says_speed(const NcclPci& pci) {
  return pci.link_speed && !pci.link_speed->empty();
}

}  // namespace trainyard
