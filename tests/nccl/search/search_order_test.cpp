// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/search/search_order.h"

#include <numeric>
#include <vector>

#include "support/nccl_servers.h"

namespace trainyard::nccl {
namespace {

Machine machine_of(const PlainServer& plain) {
  return Machine(build_system({plain_server(plain)}, {}), {.multi_node = true});
}

TEST_CASE("each GPU's own NICs come first, all of one GPU after the other", "[nccl]") {
  PlainServer plain = h100_server();
  plain.nics_per_gpu = 2;
  const Machine machine = machine_of(plain);
  std::vector<int> all(16);
  std::iota(all.begin(), all.end(), 0);
  REQUIRE(select_nets(machine, PathType::Pix, std::nullopt) == all);
  REQUIRE(select_nets(machine, PathType::Pix, 3) == std::vector{6, 7});
  // By PXN all others are there too.
  REQUIRE(select_nets(machine, PathType::Pxn, 3).size() == 16);
}

TEST_CASE("over several hosts the first NIC of every GPU comes first", "[nccl]") {
  PlainServer tray = b200_server();
  tray.gpus = 2;
  tray.nics_per_gpu = 2;
  const std::vector<NcclSystem> files(2, plain_server(tray));
  const Machine spread(build_system(files, {}), {.multi_node = true});
  REQUIRE(select_nets(spread, PathType::Pix, std::nullopt) == std::vector{0, 2, 4, 6, 1, 3, 5, 7});
  const Machine by_gpu(build_system(files, {}),
                       {.multi_node = true, .paths = {.mnnvl_scatter_nets = false}});
  REQUIRE(select_nets(by_gpu, PathType::Pix, std::nullopt) == std::vector{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("with NVSwitch a channel goes to a neighbour", "[nccl]") {
  REQUIRE(neighbours(0, 8, GraphPattern::Ring) == std::vector{7, 1});
  REQUIRE(neighbours(0, 8, GraphPattern::BalancedTree) == std::vector{1, 7});
  REQUIRE(neighbours(3, 8, GraphPattern::SplitTree) == std::vector{4, 2});
  REQUIRE(neighbours(7, 8, GraphPattern::Tree) == std::vector{0});
  REQUIRE(neighbours(1, 2, GraphPattern::Ring) == std::vector{0});
}

TEST_CASE("near GPUs come first, and far ones last to leave by a NIC", "[nccl]") {
  const Machine machine = machine_of(pcie_server());
  const BandwidthLedger ledger(machine.system());
  const std::vector<int> others{0, 1, 3};
  // To GPU 3 of its own socket, then on in order.
  REQUIRE(sort_gpus(machine, 2, others, {}) == std::vector{3, 0, 1});
  // Back to NIC 0, which is beside GPU 0.
  REQUIRE(sort_gpus(machine, 2, others, {.net = 0, .is_last = true, .ledger = &ledger}).front() ==
          0);
}

TEST_CASE("GPUs that are all alike are tried from the far end while the NIC is far off", "[nccl]") {
  PlainServer plain = pcie_server();
  plain.sockets = 1;
  plain.nic_every = 4;
  const Machine machine = machine_of(plain);
  const BandwidthLedger ledger(machine.system());
  const std::vector<int> others{1, 2, 3};
  REQUIRE(sort_gpus(machine, 0, others, {}) == std::vector{1, 2, 3});
  REQUIRE(sort_gpus(machine, 0, others, {.net = 0, .is_last = true, .ledger = &ledger}) ==
          std::vector{1, 2, 3});
  REQUIRE(sort_gpus(machine, 0, others, {.net = 0, .is_last = false, .ledger = &ledger}) ==
          std::vector{3, 2, 1});
}

}  // namespace
}  // namespace trainyard::nccl
