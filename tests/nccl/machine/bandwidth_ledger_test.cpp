// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/machine/bandwidth_ledger.h"

#include <vector>

#include "nccl/machine/machine.h"
#include "support/nccl_servers.h"

namespace trainyard::nccl {
namespace {

std::vector<float> all_left(const System& system, const BandwidthLedger& ledger) {
  std::vector<float> left;
  for (std::size_t edge = 0; edge < system.edges.size(); ++edge) {
    left.push_back(ledger.left(static_cast<int>(edge)));
  }
  return left;
}

TEST_CASE("what a path takes is gone from each of its links, and comes back", "[nccl]") {
  const Machine machine(build_system({plain_server(h100_server())}, {}), {.multi_node = true});
  BandwidthLedger ledger(machine.system());
  const Path& path = machine.paths().gpu_net.at(0, 0);
  REQUIRE(ledger.take(path, 30.0F, true));
  for (const int edge : path.edges) {
    const Edge& link = machine.system().edges[static_cast<std::size_t>(edge)];
    REQUIRE(ledger.left(edge) == link.bandwidth - 30.0F);
    REQUIRE(ledger.left(link.reverse) == link.bandwidth);
  }
  ledger.give_back(path, 30.0F, true);
  REQUIRE(all_left(machine.system(), ledger) ==
          all_left(machine.system(), BandwidthLedger(machine.system())));
}

TEST_CASE("a path without enough takes nothing", "[nccl]") {
  const Machine machine(build_system({plain_server(h100_server())}, {}), {.multi_node = true});
  BandwidthLedger ledger(machine.system());
  const Path& path = machine.paths().gpu_net.at(0, 0);
  REQUIRE(ledger.take(path, 30.0F, true));
  const std::vector<float> before = all_left(machine.system(), ledger);
  REQUIRE_FALSE(ledger.take(path, 30.0F, true));
  REQUIRE(all_left(machine.system(), ledger) == before);
}

TEST_CASE("through an Intel root complex PCIe gives a fifth more", "[nccl]") {
  PlainServer plain = pcie_server();
  const Machine intel(build_system({plain_server(plain)}, {}), {});
  BandwidthLedger ledger(intel.system());
  REQUIRE_FALSE(ledger.take(intel.paths().gpu_gpu.at(0, 1), 20.5F, true));
  REQUIRE(ledger.take(intel.paths().gpu_gpu.at(0, 1), 20.0F, true));
  REQUIRE(ledger.pci_bandwidth(0) == 0.0F);
  REQUIRE(ledger.pci_bandwidth(2) == 24.0F);
  plain.vendor = "AuthenticAMD";
  const Machine amd(build_system({plain_server(plain)}, {}), {});
  REQUIRE(BandwidthLedger(amd.system()).take(amd.paths().gpu_gpu.at(0, 1), 24.0F, true));
}

TEST_CASE("writing into a GPU before Ampere takes an eighth of the way back", "[nccl]") {
  PlainServer plain = pcie_server();
  plain.sm = 70;
  const Machine machine(build_system({plain_server(plain)}, {}), {.multi_node = true});
  BandwidthLedger ledger(machine.system());
  const Path& path = machine.paths().net_gpu.at(0, 0);
  REQUIRE(ledger.take(path, 8.0F, false));
  REQUIRE(ledger.pci_bandwidth(0) == 16.0F);
  // From the GPU into its switch: 24 - 8 / 8.
  const Edge& into_gpu =
      machine.system().edges[static_cast<std::size_t>(path.edges[path.edges.size() - 2])];
  REQUIRE(ledger.left(into_gpu.reverse) == 23.0F);
}

}  // namespace
}  // namespace trainyard::nccl
