// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/exchange/hwloc_xml.h"

#include <random>
#include <string>
#include <vector>

#include "support/damage.h"
#include "support/imported.h"

namespace trainyard {
namespace {

// Two sockets: GPU and InfiniBand below one switch, then a GPU, the display of the board and a port
// of plain Ethernet below host bridges. The NVLinks: GPU to GPU four, first GPU to a switch two.
const std::string kLstopo = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" gp_index="1"><info name="Architecture" value="x86_64"/>
  <object type="Package" os_index="0" gp_index="2">
   <info name="CPUVendor" value="AuthenticAMD"/><info name="CPUFamilyNumber" value="23"/>
   <info name="CPUModelNumber" value="49"/>
   <object type="NUMANode" os_index="0" gp_index="3" local_memory="1000"/>
   <object type="Bridge" gp_index="4" bridge_type="0-1" depth="0" bridge_pci="0000:[00-05]">
    <object type="Bridge" gp_index="5" bridge_type="1-1" depth="1" pci_busid="0000:00:01.0"
     pci_type="0604 [1022:1483] [1022:1234] 00" pci_link_speed="31.507692">
     <object type="PCIDev" gp_index="6" pci_busid="0000:01:00.0"
      pci_type="0302 [10de:20b0] [10de:134f] a1" pci_link_speed="31.507692">
      <object type="OSDev" gp_index="7" name="nvml0" osdev_type="1"/></object>
     <object type="PCIDev" gp_index="8" pci_busid="0000:02:00.0"
      pci_type="0207 [15b3:101b] [15b3:0007] 00" pci_link_speed="31.507692">
      <object type="OSDev" gp_index="9" name="ib0" osdev_type="2"/>
      <object type="OSDev" gp_index="10" name="mlx5_0" osdev_type="3"/></object>
    </object></object></object>
  <object type="Package" os_index="1" gp_index="11">
   <object type="Bridge" gp_index="12" bridge_type="0-1" depth="0" bridge_pci="0000:[80-85]">
    <object type="PCIDev" gp_index="13" pci_busid="0000:81:00.0"
     pci_type="0302 [10de:20b0] [10de:134f] a1" pci_link_speed="31.507692">
     <object type="OSDev" gp_index="14" name="nvml1" osdev_type="1"/></object>
    <object type="PCIDev" gp_index="15" pci_busid="0000:82:00.0"
     pci_type="0300 [1a03:2000] [1a03:2000] 41" pci_link_speed="0.000000"/>
    <object type="PCIDev" gp_index="16" pci_busid="0000:83:00.0"
     pci_type="0200 [8086:1563] [8086:0000] 01" pci_link_speed="4.000000"/>
   </object></object>
 </object>
 <distances2hetero nbobjs="3" kind="25" name="NVLinkBandwidth">
  <indexes length="24">OSDev:7 OSDev:14 PCIDev:99 </indexes>
  <u64values length="30">1000000 100000 50000 100000 1000000 </u64values>
  <u64values length="20">0 50000 0 0 </u64values>
 </distances2hetero>
</topology>)";

NcclSystem read_lstopo(const std::string& text) {
  return read_hwloc_xml(text, "m.xml");
}

std::string error_of_lstopo(const std::string& text) {
  return complaint([&] { return read_lstopo(text); });
}

}  // namespace

TEST_CASE("what lstopo writes is a machine with sockets, bridges, GPUs, NICs and NVLinks") {
  const NcclSystem system = read_lstopo(kLstopo);
  REQUIRE(system.cpus.size() == 2);
  REQUIRE(system.cpus[0].arch == "x86_64");
  REQUIRE(system.cpus[0].familyid == 23);
  REQUIRE(system.cpus[0].pcis.size() == 1);
  const NcclPci& bridge = system.cpus[0].pcis[0];
  REQUIRE(bridge.device_class == "0x060400");
  REQUIRE(bridge.link_speed == "16.0 GT/s PCIe");
  REQUIRE(bridge.pcis.size() == 2);
  REQUIRE(bridge.pcis[0].gpus.size() == 1);
  REQUIRE(bridge.pcis[0].place.line == 12);
  REQUIRE(bridge.pcis[0].gpus[0].nvlinks.size() == 2);
  REQUIRE(bridge.pcis[0].gpus[0].nvlinks[0].target == "0000:81:00.0");
  REQUIRE(bridge.pcis[0].gpus[0].nvlinks[0].count == 4);
  REQUIRE(bridge.pcis[0].gpus[0].nvlinks[1].tclass == "0x068000");
  REQUIRE(bridge.pcis[0].gpus[0].nvlinks[1].count == 2);
  REQUIRE(bridge.pcis[1].nics[0].nets.size() == 1);
  REQUIRE(bridge.pcis[1].nics[0].nets[0].name == "mlx5_0");
  // Neither the display nor the port without RDMA.
  REQUIRE(system.cpus[1].pcis.size() == 1);
  REQUIRE(system.cpus[1].pcis[0].busid == "0000:81:00.0");

  const ImportedServer server =
      import_nccl_xml(read_lstopo(with(kLstopo, "1000000 100000 50000", "1000000 100000 0")),
                      shipped_catalogue(), {.cpu = "EPYC-Rome"}, "m.xml");
  REQUIRE(server.tree.gpu == "A100-SXM-40GB");
  REQUIRE(server.tree.nic == "ConnectX-6");
  REQUIRE(server.tree.gpu_links == std::vector<std::vector<int>>{{0, 4}, {4, 0}});
  REQUIRE(tree_of(server).find("    - - {switch: [gpu, nic]}\n    - - gpu\n") == 0);
}

TEST_CASE("version 3 of hwloc's format writes kinds of devices as sets") {
  const std::string text =
      with(with(kLstopo, "version=\"2.0\"", "version=\"3.0\""), "name=\"mlx5_0\" osdev_type=\"3\"",
           "name=\"mlx5_0\" osdev_type=\"48\"");
  REQUIRE(read_lstopo(text) == read_lstopo(kLstopo));
}

TEST_CASE("without RDMA every network adapter stands") {
  const NcclSystem system =
      read_lstopo(with(kLstopo, "name=\"mlx5_0\" osdev_type=\"3\"", "name=\"x\" osdev_type=\"2\""));
  REQUIRE(system.cpus[0].pcis[0].pcis.size() == 2);
  REQUIRE(system.cpus[1].pcis.size() == 2);
}

TEST_CASE("mistakes in a file of hwloc are one line with their place") {
  REQUIRE(error_of_lstopo("<topology/>") == "m.xml:1:2: topology: expected an object, found none");
  REQUIRE(error_of_lstopo(with(kLstopo, "0 50000 0 0", "0 50000 0")) ==
          "m.xml:31:3: NVLinkBandwidth: expected 9 values for 3 devices, found 8");
  REQUIRE(error_of_lstopo("<topo/>") ==
          "m.xml:1:2: expected the element \"topology\", found \"topo\"");
}

TEST_CASE("a damaged file of hwloc is read or refused in one line") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 engine(seed);
    const std::string text = damaged(kLstopo, "<>/=\"0123456789abcdefx: \n.", engine);
    INFO("seed=" << seed);
    const std::string error = complaint([&] {
      return import_nccl_xml(read_lstopo(text), shipped_catalogue(), {.cpu = "EPYC-Rome"}, "m.xml");
    });
    REQUIRE(error.find('\n') == std::string::npos);
  }
}

}  // namespace trainyard
