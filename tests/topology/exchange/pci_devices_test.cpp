// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/exchange/pci_devices.h"

#include <utility>

#include "support/shipped.h"

namespace trainyard {

TEST_CASE("a PCI device is known by its element, else by its class") {
  NcclPci pci;
  REQUIRE_FALSE(is_gpu(pci));
  REQUIRE_FALSE(is_nic(pci));
  for (const char* of_gpu : {"0x030200", "0x038000", "0x120000"}) {
    pci.device_class = of_gpu;
    REQUIRE(is_gpu(pci));
    REQUIRE_FALSE(is_nic(pci));
  }
  pci.device_class = "0x020700";
  REQUIRE(is_nic(pci));
  pci.gpus.emplace_back();
  REQUIRE(is_gpu(pci));
  REQUIRE_FALSE(is_nic(pci));
}

TEST_CASE("ids and cards of PCI devices do not depend on case") {
  NcclPci pci;
  REQUIRE_FALSE(pci_id(pci).has_value());
  pci.vendor = "0x10DE";
  pci.device = "0x20B5";
  REQUIRE(pci_id(pci) == "10de:20b5");
  REQUIRE(maker_of(pci) == "NVIDIA");
  pci.vendor = "0x15b3";
  REQUIRE(maker_of(pci).empty());
  REQUIRE(card_of("0000:0A:00.1") == "0000:0a:00");
}

TEST_CASE("the speed of a PCI device is a link of the catalogue, or says nothing") {
  NcclPci pci;
  REQUIRE_FALSE(says_speed(pci));
  for (const auto& [text, part] : {std::pair("16.0 GT/s PCIe", "PCIe4"), {"32 GT/s", "PCIe5"}}) {
    pci.link_speed = text;
    REQUIRE(says_speed(pci));
    REQUIRE(stated_link(pci, shipped_catalogue())->name == part);
  }
  for (const char* text : {"", "fast", "16.0", "2.5 GT/s"}) {
    pci.link_speed = text;
    REQUIRE(stated_link(pci, shipped_catalogue()) == nullptr);
  }
}

}  // namespace trainyard
