// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/search/channel_search.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/nccl_servers.h"

namespace trainyard::nccl {
namespace {

constexpr int kBudget = 1 << 14;

Candidate ring_of(float bandwidth, int channels) {
  return {.pattern = GraphPattern::Ring,
          .max_channels = channels,
          .bw_intra = bandwidth,
          .bw_inter = bandwidth,
          .type_intra = PathType::Nvl,
          .type_inter = PathType::Pxn};
}

Candidate found(const Machine& machine, const Candidate& attempt, int* left = nullptr) {
  ChannelSearch search(machine);
  Candidate best = attempt;
  best.channels = 0;
  best.bw_intra = best.bw_inter = 0.0F;
  const int budget = search.run(attempt, best, kBudget);
  if (left != nullptr) {
    *left = budget;
  }
  return best;
}

Machine single(const PlainServer& plain) {
  return Machine(build_system({plain_server(plain)}, {.nets = false}), {});
}

TEST_CASE("as many rings are found as the links carry", "[nccl]") {
  // 240 GB/s for each GPU.
  const Machine machine = single(a100_server());
  REQUIRE(found(machine, ring_of(20.0F, 32)).channels == 12);
  REQUIRE(found(machine, ring_of(40.0F, 32)).channels == 6);
  REQUIRE(found(machine, ring_of(241.0F, 32)).channels == 0);
}

TEST_CASE("the most channels end the search, the budget too", "[nccl]") {
  const Machine machine = single(a100_server());
  int left = 0;
  REQUIRE(found(machine, ring_of(20.0F, 12), &left).channels == 12);
  REQUIRE(left == -1);
  Candidate best = ring_of(20.0F, 12);
  ChannelSearch search(machine);
  // Not enough for the eight GPUs of one ring.
  REQUIRE(search.run(ring_of(20.0F, 12), best, 5) == 0);
  REQUIRE(best.channels == 0);
}

TEST_CASE("fewer channels than asked for are none", "[nccl]") {
  Candidate attempt = ring_of(40.0F, 32);
  attempt.min_channels = 7;
  REQUIRE(found(single(a100_server()), attempt).channels == 0);
}

TEST_CASE("a search gives back all that it took", "[nccl]") {
  const Machine machine(build_system({plain_server(h100_server())}, {}), {.multi_node = true});
  ChannelSearch search(machine);
  Candidate first = ring_of(45.0F, 32);
  Candidate second = ring_of(45.0F, 32);
  first.bw_intra = second.bw_intra = 0.0F;
  Candidate attempt = ring_of(45.0F, 32);
  attempt.same_channels = false;
  (void)search.run(attempt, first, kBudget);
  (void)search.run(attempt, second, kBudget);
  REQUIRE(first.channels == 8);
  REQUIRE(first.channels == second.channels);
  REQUIRE(first.gpus == second.gpus);
  REQUIRE(first.nets == second.nets);
}

TEST_CASE("paths farther than allowed are not taken", "[nccl]") {
  const Machine machine = single(pcie_server());
  Candidate attempt = ring_of(10.0F, 32);
  attempt.type_intra = PathType::Phb;
  REQUIRE(found(machine, attempt).channels == 0);
  attempt.type_intra = PathType::Sys;
  REQUIRE(found(machine, attempt).channels > 0);
}

TEST_CASE("rings that swap NICs come in pairs", "[nccl]") {
  const Machine machine(build_system({plain_server(h100_server())}, {}), {.multi_node = true});
  Candidate attempt = ring_of(48.0F, 32);
  attempt.cross_nic = 2;
  attempt.type_inter = PathType::Pix;
  attempt.same_channels = false;
  const Candidate best = found(machine, attempt);
  REQUIRE(best.channels == 8);
  for (std::size_t channel = 0; channel < 8; channel += 2) {
    REQUIRE(best.nets[channel][0] == best.nets[channel + 1][1]);
    REQUIRE(best.nets[channel][1] == best.nets[channel + 1][0]);
  }
}

TEST_CASE("ways through another GPU are shorter before 2.30, without nodes for ranks", "[nccl]") {
  PlainServer pair = h100_server();
  pair.gpus = 2;
  const auto hops = [&](Version version) {
    const Machine machine(build_system({plain_server(pair)}, {}),
                          {.version = version, .multi_node = true});
    Candidate attempt = ring_of(20.0F, 1);
    attempt.same_channels = false;
    return found(machine, attempt).hops;
  };
  // NIC, adapter, switch, GPU 0; NVSwitch, GPU 1; NVSwitch, GPU 0, switch, adapter, NIC.
  REQUIRE(hops(Version::V2_28) == 3 + 2 + 2 + 3);
  // And from each rank to its device and back.
  REQUIRE(hops(Version::V2_30) == 4 + 4 + 4 + 4);
}

TEST_CASE("rails and planes decide where a ring may leave", "[nccl]") {
  NcclSystem file = plain_server(h100_server());
  int index = 0;
  for (NcclCpu& cpu : file.cpus) {
    for (NcclPci& bridge : cpu.pcis) {
      NcclNet& net = bridge.pcis[1].nics[0].nets[0];
      net.rail = index / 2;
      net.plane = index % 2;
      ++index;
    }
  }
  // Pairs of NICs are of one rail: a ring may leave beside where it entered.
  Candidate attempt = ring_of(48.0F, 32);
  attempt.type_inter = PathType::Pix;
  attempt.same_channels = false;
  const Machine crossed(build_system({file}, {}), {.multi_node = true});
  REQUIRE(found(crossed, attempt).channels == 0);  // The planes differ.
  for (NcclCpu& cpu : file.cpus) {
    for (NcclPci& bridge : cpu.pcis) {
      bridge.pcis[1].nics[0].nets[0].plane = {};
    }
  }
  const Machine paired(build_system({file}, {}), {.multi_node = true});
  const Candidate best = found(paired, attempt);
  REQUIRE(best.channels == 8);
  REQUIRE(best.nets[0][0] / 2 == best.nets[0][1] / 2);
}

// "(4) 8x48/48 NVL/PXN 0": pattern, channels, bandwidths inside and to NICs, types, crossNic.
std::string in_short(const Graph& graph) {
  return fmt::format("({}) {}x{}/{} {}/{} {}", static_cast<int>(graph.pattern), graph.channel_count,
                     graph.bw_intra, graph.bw_inter, to_string(graph.type_intra),
                     to_string(graph.type_inter), graph.cross_nic);
}

PlainServer v100_server() {
  return {.sm = 70, .nvlinks = 6, .link_speed = "8.0 GT/s PCIe", .nic_speed = 100'000, .model = 85};
}

PlainServer h100_on_slow_nics() {
  PlainServer server = h100_server();
  server.nic_speed = 200'000;
  return server;
}

// Results of the search of NVIDIA/nccl itself at the tags of these releases, for the same files.
TEST_CASE("rings and trees are those that each release finds", "[nccl]") {
  struct Golden {
    Version version;
    PlainServer server;
    bool several;
    std::string ring;
    std::string tree;
  };
  const std::vector<Golden> goldens{
      {Version::V2_12, h100_server(), true, "(4) 16x24/24 NVL/PXN 0", "(1) 16x24/24 NVL/PXN 0"},
      {Version::V2_14, a100_server(), true, "(4) 8x24/24 NVL/PXN 0", "(1) 8x30/24 NVL/PXN 0"},
      {Version::V2_14, v100_server(), true, "(4) 4x12/12 NVL/PIX 1", "(1) 4x24/12 NVL/PXN 1"},
      {Version::V2_16, h100_server(), false, "(4) 12x33/33 NVL/PIX 0", "(1) 12x33/33 NVL/PIX 0"},
      {Version::V2_16, h100_server(), true, "(4) 8x48/48 NVL/PXN 0", "(1) 8x45/45 NVL/PXN 0"},
      {Version::V2_17, h100_on_slow_nics(), true, "(4) 8x24/24 NVL/PXN 0", "(1) 8x48/24 NVL/PXN 0"},
      {Version::V2_16, pcie_server(), true, "(4) 2x9/9 SYS/SYS 1", "(1) 2x9/7 SYS/SYS 0"},
      {Version::V2_18, h100_server(), true, "(4) 8x45/45 NVL/PXN 0", "(3) 8x48/48 NVL/PIX 0"},
      {Version::V2_18, a100_server(), true, "(4) 8x24/24 NVL/PXN 0", "(1) 8x28/24 NVL/PHB 0"},
      {Version::V2_18, v100_server(), true, "(4) 8x10/10 NVL/PXN 0", "(1) 8x12/10 NVL/PHB 0"},
      {Version::V2_19, h100_server(), true, "(4) 8x45/45 NVL/PXN 0", "(3) 8x48/48 NVL/PIX 0"},
      {Version::V2_19, h100_on_slow_nics(), true, "(4) 8x24/24 NVL/PXN 0", "(3) 8x48/24 NVL/PIX 0"},
      {Version::V2_19, a100_server(), true, "(4) 8x24/24 NVL/PXN 0", "(1) 8x28/24 NVL/PHB 0"},
      {Version::V2_19, pcie_server(), true, "(4) 2x10/10 SYS/SYS 1", "(1) 2x9/7 SYS/SYS 0"},
  };
  for (const Golden& golden : goldens) {
    INFO("NCCL " << to_string(golden.version) << ", sm " << golden.server.sm);
    const GraphSet graphs = search_graphs(
        {plain_server(golden.server)}, {.version = golden.version, .multi_node = golden.several});
    REQUIRE(in_short(graphs.ring) == golden.ring);
    REQUIRE(in_short(graphs.tree) == golden.tree);
  }
}

}  // namespace
}  // namespace trainyard::nccl
