// SPDX-License-Identifier: Apache-2.0
// The golden figures are what NCCL 2.30.7's own search code returns for these topology files.
#include "support/catch.h"

#include "nccl/search.h"

#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "support/nccl_servers.h"

namespace trainyard::nccl {
namespace {

// "8x48/48 NVL/PIX 2": channels, bandwidths, types, crossNic.
std::string summary(const Graph& graph) {
  return fmt::format("({}) {}x{}/{} {}/{} {}", static_cast<int>(graph.pattern), graph.channel_count,
                     graph.bw_intra, graph.bw_inter, to_string(graph.type_intra),
                     to_string(graph.type_inter), graph.cross_nic);
}

// "0: 0 7 6 5 4 3 2 1 :1"
std::string order(const GraphChannel& channel) {
  std::string text = channel.net_in ? fmt::format("{}:", *channel.net_in) : "";
  for (const int gpu : channel.gpus) {
    text += fmt::format(" {}", gpu);
  }
  return text + (channel.net_out ? fmt::format(" :{}", *channel.net_out) : "");
}

GraphSet graphs_of(const PlainServer& server, int nodes, int cross_nic = 2) {
  return search_graphs({plain_server(server)}, {.multi_node = nodes > 1, .cross_nic = cross_nic});
}

void show(const char* name, const PlainServer& server, int nodes, int cross_nic = 2) {
  const auto start = std::chrono::steady_clock::now();
  const GraphSet g = graphs_of(server, nodes, cross_nic);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  std::cout << name << " x" << nodes << "  ring " << summary(g.ring) << "  tree " << summary(g.tree);
  if (g.nvls) std::cout << "  nvls " << summary(*g.nvls);
  std::cout << "  ms " << ms << "\n";
  for (const auto& c : g.ring.channels) std::cout << "   R " << order(c) << "\n";
  for (const auto& c : g.tree.channels) std::cout << "   T " << order(c) << "\n";
  if (g.nvls) for (const auto& c : g.nvls->channels) std::cout << "   N " << order(c) << "\n";
}

TEST_CASE("show", "[show]") {
  show("H100", h100_server(), 1);
  show("H100", h100_server(), 2);
  show("H100 cross 0", h100_server(), 2, 0);
  show("A100", a100_server(), 1);
  show("A100", a100_server(), 2);
  show("B200", b200_server(), 1);
  show("B200", b200_server(), 2);
  PlainServer fast = b200_server();
  fast.link_speed = "64.0 GT/s PCIe";
  fast.nic_speed = 800'000;
  show("B200 800", fast, 2);
  show("pcie", pcie_server(), 1);
  show("pcie", pcie_server(), 2);
  PlainServer one = h100_server();
  one.gpus = 1; one.nvlinks = 0; one.sockets = 1;
  show("1 GPU", one, 2);
  one.nic_speed = 10'000; one.gpudirect = false;
  show("1 GPU socket", one, 2);
  PlainServer two = h100_server();
  two.gpus = 1; two.nvlinks = 0; two.sockets = 1; two.ranks_per_gpu = 2;
  show("2 ranks", two, 1);
  PlainServer four = h100_server();
  four.nic_every = 2;
  show("H100 4 NIC", four, 2);
  PlainServer sixteen = h100_server();
  sixteen.nics_per_gpu = 2; sixteen.nic_speed = 200'000;
  show("H100 16 NIC", sixteen, 2);
  PlainServer half = h100_server();
  half.nic_speed = 200'000;
  show("H100 8x200", half, 2);
  PlainServer quad = h100_server();
  quad.gpus = 4;
  show("4xH100", quad, 1);
  PlainServer intel = a100_server();
  intel.vendor = "GenuineIntel"; intel.family = 6; intel.model = 143; intel.nic_speed = 100'000;
  show("A100 100G Intel", intel, 2);
}

}  // namespace
}  // namespace trainyard::nccl
