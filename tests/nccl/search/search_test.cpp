// SPDX-License-Identifier: Apache-2.0
// The golden figures are what the search code of NCCL 2.30.7 itself returns for these topology
// files, without a GPU.
#include "support/catch.h"

#include "nccl/search/search.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "nccl/machine/bandwidth_ledger.h"
#include "sim/config_error.h"
#include "support/effort.h"
#include "support/nccl_servers.h"

namespace trainyard::nccl {
namespace {

// "(4) 8x48/48 NVL/PIX 2": pattern, channels, bandwidths, types, crossNic.
std::string summary(const Graph& graph) {
  return fmt::format("({}) {}x{}/{} {}/{} {}", static_cast<int>(graph.pattern), graph.channel_count,
                     graph.bw_intra, graph.bw_inter, to_string(graph.type_intra),
                     to_string(graph.type_inter), graph.cross_nic);
}

// "0: 0 7 6 5 4 3 2 1 :1", NICs at the ends.
std::string order(const GraphChannel& channel) {
  std::string text = channel.net_in ? fmt::format("{}:", *channel.net_in) : "";
  for (const int gpu : channel.gpus) {
    text += fmt::format(" {}", gpu);
  }
  return text + (channel.net_out ? fmt::format(" :{}", *channel.net_out) : "");
}

// GPUs from `first` on, upwards or downwards, round and round, between two NICs.
std::string turn(int in, int first, bool is_up, int out, int gpus = 8) {
  GraphChannel channel{.net_in = in, .net_out = out};
  for (int step = 0; step < gpus; ++step) {
    channel.gpus.push_back((first + (is_up ? step : gpus - step)) % gpus);
  }
  return order(channel);
}

GraphSet graphs_of(const PlainServer& server, int nodes, int cross_nic = 2) {
  return search_graphs({plain_server(server)},
                       {.multi_node = nodes > 1, .paths = {.cross_nic = cross_nic}});
}

PlainServer b200_fast() {
  PlainServer server = b200_server();
  server.link_speed = "64.0 GT/s PCIe";
  server.nic_speed = 800'000;
  return server;
}

PlainServer lone_gpu() {
  PlainServer server = h100_server();
  server.gpus = 1;
  server.nvlinks = 0;
  server.sockets = 1;
  return server;
}

PlainServer lone_gpu_on_socket_nic() {
  PlainServer server = lone_gpu();
  server.nic_speed = 10'000;
  server.gpudirect = false;
  return server;
}

PlainServer two_ranks_on_one_gpu() {
  PlainServer server = lone_gpu();
  server.ranks_per_gpu = 2;
  return server;
}

PlainServer h100_four_nics() {
  PlainServer server = h100_server();
  server.nic_every = 2;
  return server;
}

PlainServer h100_sixteen_nics() {
  PlainServer server = h100_server();
  server.nics_per_gpu = 2;
  server.nic_speed = 200'000;
  return server;
}

struct Golden {
  std::string name;
  PlainServer server;
  int nodes;
  int cross_nic;
  std::string ring;
  std::string tree;
  std::string nvls;  // Empty if there is none.
};

std::vector<Golden> goldens() {
  return {
      {"H100", h100_server(), 1, 2, "(4) 12x30/30 NVL/PIX 0", "(1) 12x30/30 NVL/PIX 0",
       "(5) 8x40/60 NVL/PIX 0"},
      {"H100", h100_server(), 2, 2, "(4) 8x48/48 NVL/PIX 2", "(3) 8x48/48 NVL/PIX 0",
       "(5) 8x40/48 NVL/PIX 0"},
      {"H100, rings keep their NIC", h100_server(), 4, 0, "(4) 8x45/45 NVL/PXN 0",
       "(3) 8x48/48 NVL/PIX 0", "(5) 8x40/48 NVL/PIX 0"},
      {"A100", a100_server(), 1, 2, "(4) 12x20/20 NVL/PIX 0", "(1) 12x20/20 NVL/PIX 0", ""},
      {"A100", a100_server(), 2, 2, "(4) 8x24/24 NVL/PXN 0", "(1) 8x24/24 NVL/PHB 0", ""},
      {"B200", b200_server(), 1, 2, "(4) 16x45/45 NVL/PIX 0", "(1) 16x45/45 NVL/PIX 0",
       "(5) 8x80/90 NVL/PIX 0"},
      {"B200", b200_server(), 2, 2, "(4) 8x48/48 NVL/PXN 0", "(3) 8x96/48 NVL/PIX 0",
       "(5) 8x48/48 NVL/PIX 0"},
      {"B200, 800 Gb/s", b200_fast(), 2, 2, "(4) 16x48/48 NVL/PIX 2", "(3) 16x48/48 NVL/PIX 0",
       "(5) 8x80/96 NVL/PIX 0"},
      {"PCIe", pcie_server(), 1, 2, "(4) 1x20/20 SYS/PIX 0", "(1) 1x20/20 SYS/PIX 0", ""},
      {"PCIe", pcie_server(), 2, 2, "(4) 2x10/10 SYS/SYS 0", "(1) 2x7/7 SYS/SYS 0", ""},
      {"one GPU", lone_gpu(), 2, 2, "(4) 2x24/24 LOC/PIX 0", "(3) 2x48/24 LOC/PIX 0", ""},
      {"one GPU, 10 Gb/s", lone_gpu_on_socket_nic(), 2, 2, "(4) 1x1.2/1.2 LOC/PHB 0",
       "(3) 1x2.4/1.2 LOC/PHB 0", ""},
      {"two ranks on one GPU", two_ranks_on_one_gpu(), 1, 2, "(4) 32x60/60 LOC/PIX 0",
       "(1) 32x6/3 LOC/PIX 0", ""},
  };
}

TEST_CASE("the search finds what NCCL 2.30.7 finds", "[nccl]") {
  for (const Golden& golden : goldens()) {
    INFO(golden.name << ", nodes: " << golden.nodes);
    const GraphSet graphs = graphs_of(golden.server, golden.nodes, golden.cross_nic);
    REQUIRE(summary(graphs.ring) == golden.ring);
    REQUIRE(summary(graphs.tree) == golden.tree);
    REQUIRE((graphs.nvls.exists() ? summary(graphs.nvls) : "") == golden.nvls);
  }
}

// What the tables of its tuner for the same files imply.
TEST_CASE("the search finds what the tuner of NCCL 2.30.7 starts from", "[nccl]") {
  PlainServer slow = h100_server();
  slow.nic_speed = 200'000;
  GraphSet graphs = graphs_of(slow, 2);
  REQUIRE(graphs.ring.channel_count * graphs.ring.bw_intra == 192.0);
  REQUIRE(graphs.tree.pattern == GraphPattern::Tree);
  REQUIRE(graphs.tree.bw_intra == 48.0);
  REQUIRE(graphs.nvls.channel_count * graphs.nvls.bw_inter == 192.0);
  graphs = graphs_of(h100_four_nics(), 2);
  REQUIRE(graphs.ring.channel_count * graphs.ring.bw_inter == 192.0);
  REQUIRE(graphs.nvls.channel_count == 4);
  graphs = graphs_of(h100_sixteen_nics(), 2);
  REQUIRE(graphs.ring.channel_count * graphs.ring.bw_inter == 384.0);
  REQUIRE(graphs.tree.channel_count * graphs.tree.bw_intra == 384.0);
  REQUIRE(graphs.nvls.channel_count == 8);
  REQUIRE(graphs.nvls.bw_intra == 24.0);
  PlainServer half = h100_server();
  half.gpus = 4;
  graphs = graphs_of(half, 1);
  REQUIRE(graphs.ring.channel_count * graphs.ring.bw_intra == 360.0);
  REQUIRE(summary(graphs.nvls) == "(5) 4x60/60 NVL/PIX 0");
  PlainServer intel = a100_server();
  intel.vendor = "GenuineIntel";
  intel.family = 6;
  intel.model = 143;
  intel.nic_speed = 100'000;
  graphs = graphs_of(intel, 2);
  REQUIRE(graphs.ring.channel_count * graphs.ring.bw_inter == 96.0);
  REQUIRE(graphs.tree.channel_count * graphs.tree.bw_intra == 192.0);
}

TEST_CASE("two GPUs on a bridge share its links between rings and trees", "[nccl]") {
  PlainServer plain = h100_server();
  plain.gpus = 2;
  plain.nvlinks = 0;
  NcclSystem file = plain_server(plain);
  file.cpus[0].pcis[0].pcis[0].gpus[0].nvlinks = {
      {.target = "0000:21:00.0", .count = 18, .tclass = "0x030200"}};
  file.cpus[1].pcis[0].pcis[0].gpus[0].nvlinks = {
      {.target = "0000:11:00.0", .count = 18, .tclass = "0x030200"}};
  const GraphSet graphs = search_graphs({file}, {});
  REQUIRE(summary(graphs.ring) == "(4) 12x30/30 NVL/PIX 0");
  REQUIRE(graphs.tree.channel_count == 12);
  REQUIRE(graphs.tree.bw_intra >= 42.0);
  REQUIRE_FALSE(graphs.nvls.exists());
}

TEST_CASE("channels visit GPUs and NICs in the order that NCCL 2.30.7 has", "[nccl]") {
  const GraphSet crossed = graphs_of(h100_server(), 2);
  const GraphSet kept = graphs_of(h100_server(), 2, 0);
  const GraphSet ampere = graphs_of(a100_server(), 2);
  const GraphSet blackwell = graphs_of(b200_server(), 2);
  for (int channel = 0; channel < 8; ++channel) {
    const auto index = static_cast<std::size_t>(channel);
    const bool is_odd = channel % 2 == 1;
    INFO("channel " << channel);
    REQUIRE(order(crossed.ring.channels[index]) ==
            turn(channel, channel, is_odd, is_odd ? channel - 1 : channel + 1));
    for (const GraphSet* graphs : {&kept, &ampere, &blackwell}) {
      REQUIRE(order(graphs->ring.channels[index]) == turn(channel, channel, false, channel));
    }
    for (const GraphSet* graphs : {&crossed, &kept, &blackwell}) {
      REQUIRE(order(graphs->tree.channels[index]) == turn(channel, channel, true, channel));
      REQUIRE(order(graphs->nvls.channels[index]) ==
              fmt::format("{}: {} :{}", channel, channel, channel));
    }
    // The neighbour above is on the other socket.
    REQUIRE(order(ampere.tree.channels[index]) ==
            turn(channel, channel, channel % 4 != 3, channel));
  }
}

TEST_CASE("orders with fewer and with more NICs than GPUs are NCCL's too", "[nccl]") {
  const GraphSet four = graphs_of(h100_four_nics(), 2);
  REQUIRE(four.ring.channel_count == 8);
  for (int channel = 0; channel < 8; ++channel) {
    const auto index = static_cast<std::size_t>(channel);
    const int net = channel % 4;
    REQUIRE(order(four.ring.channels[index]) == turn(net, 2 * net, false, net));
    REQUIRE(order(four.tree.channels[index]) == turn(net, 2 * net, true, net));
  }
  for (int head = 0; head < 4; ++head) {
    REQUIRE(four.nvls.channels[static_cast<std::size_t>(head)].gpus == std::vector{2 * head});
  }
  const GraphSet sixteen = graphs_of(h100_sixteen_nics(), 2);
  std::vector<std::string> rings;
  for (const GraphChannel& channel : sixteen.ring.channels) {
    rings.push_back(order(channel));
  }
  std::vector<std::string> expected{turn(0, 0, false, 2), turn(2, 1, true, 0)};
  for (int gpu = 1; gpu < 7; ++gpu) {
    expected.push_back(turn(2 * gpu + 1, gpu, false, 2 * gpu + 2));
    expected.push_back(turn(2 * gpu + 2, gpu + 1, true, 2 * gpu + 1));
  }
  expected.push_back(turn(15, 7, false, 1));
  expected.push_back(turn(1, 0, true, 15));
  REQUIRE(rings == expected);
  for (int net = 0; net < 16; ++net) {
    REQUIRE(order(sixteen.tree.channels[static_cast<std::size_t>(net)]) ==
            turn(net, net / 2, true, net));
  }
  for (int head = 0; head < 8; ++head) {
    const GraphChannel& channel = sixteen.nvls.channels[static_cast<std::size_t>(head)];
    REQUIRE(channel.gpus == std::vector{head});
    REQUIRE(channel.net_in == 2 * head);
  }
}

// Two GPUs of an H20 server, each with an adapter below its switch, and seven more adapters; as the
// log of NVIDIA/nccl issue 1189 (comment of zhou9402) prints the system.
NcclSystem two_h20() {
  const auto device = [](const std::string& busid, const std::string& type) {
    NcclPci pci;
    pci.busid = "0000:" + busid + ":00.0";
    pci.device_class = type;
    pci.link_speed = "32.0 GT/s PCIe";
    pci.link_width = 16;
    return pci;
  };
  const auto adapter = [&](const std::string& busid, int dev, int speed) {
    NcclPci pci = device(busid, "0x020000");
    NcclNet net;
    net.dev = dev;
    net.speed = speed;
    net.port = 1;
    net.guid = fmt::format("0x{:x}", 0x100 + dev);
    net.gdr = 1;
    pci.nics.push_back({.nets = {net}});
    return pci;
  };
  const auto below = [&](const std::string& busid, std::vector<NcclPci> devices) {
    NcclPci pci = device(busid, "0x060400");
    pci.pcis = std::move(devices);
    return pci;
  };
  const auto card = [&](const std::string& busid, int dev) {
    NcclPci pci = device(busid, "0x030200");
    NcclGpu gpu;
    gpu.dev = gpu.rank = dev;
    gpu.sm = 90;
    gpu.gdr = 1;
    gpu.nvlinks.push_back({.target = "0000:05:00.0", .count = 18, .tclass = "0x068000"});
    pci.gpus.push_back(gpu);
    return pci;
  };
  constexpr int kFast = 400'000;
  NcclSystem file = plain_server({.gpus = 2});
  file.cpus[0].pcis = {
      below("16", {card("18", 0), adapter("19", 3, kFast)}), adapter("26", 8, 200'000),
      below("36", {card("38", 1), adapter("39", 2, kFast)}), below("46", {adapter("49", 1, kFast)}),
      below("56", {adapter("59", 0, kFast)})};
  file.cpus[1].pcis.clear();
  for (const int dev : {5, 4, 7, 6}) {
    file.cpus[1].pcis.push_back(
        below(fmt::format("{}6", 5 + dev), {adapter(fmt::format("{}9", 5 + dev), dev, kFast)}));
  }
  return file;
}

TEST_CASE("two GPUs among many NICs have the channels of a published log", "[nccl]") {
  const GraphSet graphs =
      search_graphs({two_h20()}, {.version = Version::V2_27,
                                  .multi_node = true,
                                  .paths = {.cross_nic = 1, .pxn_disable = true}});
  REQUIRE(summary(graphs.ring) == "(4) 4x24/24 NVL/PIX 1");
  std::vector<std::string> rings;
  for (const GraphChannel& channel : graphs.ring.channels) {
    rings.push_back(order(channel));
  }
  REQUIRE(rings == std::vector<std::string>{"3: 0 1 :2", "2: 1 0 :3", "3: 0 1 :2", "2: 1 0 :3"});
}

TEST_CASE("GPUs that NVLink joins in a chain are one island", "[nccl]") {
  NcclSystem file = plain_server({.gpus = 4, .sm = 75, .nvlinks = 0, .nic_speed = 100'000});
  const auto join = [&](int from, int to, int count) {
    file.cpus[static_cast<std::size_t>(from / 2)]
        .pcis[static_cast<std::size_t>(from % 2)]
        .pcis[0]
        .gpus[0]
        .nvlinks.push_back({.target = fmt::format("0000:{:02x}:00.0", 0x11 + 0x10 * to),
                            .count = count,
                            .tclass = "0x030200"});
  };
  const auto join_both = [&](int a, int b, int count) {
    join(a, b, count);
    join(b, a, count);
  };
  join_both(0, 1, 1);
  join_both(1, 2, 2);
  join_both(1, 3, 1);
  join_both(2, 3, 1);
  // Two islands would have to have two rings, with half of this each.
  REQUIRE(summary(search_graphs({file}, {}).ring) == "(4) 1x20/20 NVB/PIX 0");
  NcclSystem islands = plain_server({.gpus = 4, .sm = 75, .nvlinks = 0, .nic_speed = 100'000});
  std::swap(file, islands);
  join_both(0, 1, 2);
  join_both(2, 3, 2);
  REQUIRE(search_graphs({file}, {}).ring.channel_count > 1);
}

TEST_CASE("speeds that came later are missing before", "[nccl]") {
  const auto old = [](const PlainServer& server, bool multi_node) {
    return search_graphs({plain_server(server)},
                         {.version = Version::V2_28, .multi_node = multi_node});
  };
  // 16 x 45 is 8 x 90 doubled; trees have no such way.
  REQUIRE(summary(old(b200_server(), false).ring) == "(4) 16x45/45 NVL/PIX 0");
  REQUIRE(old(b200_server(), false).tree.bw_intra == 40.0);
  REQUIRE(old(b200_fast(), true).nvls.bw_intra == 48.0);
  REQUIRE(old(h100_server(), true).ring == graphs_of(h100_server(), 2).ring);
}

std::vector<PlainServer> property_servers() {
  std::vector<PlainServer> servers;
  for (const PlainServer& base : {h100_server(), a100_server(), b200_server(), pcie_server()}) {
    for (const int gpus : {2, 3, 4, 6, 8}) {
      for (const int nics_per_gpu : {1, 2}) {
        PlainServer server = base;
        server.gpus = gpus;
        server.nics_per_gpu = nics_per_gpu;
        servers.push_back(server);
      }
    }
  }
  if (kIsSanitized) {
    // Every third: of each kind several.
    std::vector<PlainServer> some;
    for (std::size_t i = 0; i < servers.size(); i += 3) {
      some.push_back(servers[i]);
    }
    return some;
  }
  return servers;
}

TEST_CASE("every channel visits every GPU once", "[nccl]") {
  for (const PlainServer& server : property_servers()) {
    for (const int nodes : {1, 2}) {
      const GraphSet graphs = graphs_of(server, nodes);
      for (const Graph* graph : {&graphs.ring, &graphs.tree}) {
        REQUIRE(static_cast<int>(graph->channels.size()) == graph->channel_count);
        REQUIRE(graph->channel_count > 0);
        for (const GraphChannel& channel : graph->channels) {
          std::vector<int> gpus = channel.gpus;
          std::sort(gpus.begin(), gpus.end());
          std::vector<int> all(static_cast<std::size_t>(server.gpus));
          std::iota(all.begin(), all.end(), 0);
          REQUIRE(gpus == all);
          REQUIRE(channel.net_in.has_value() == (nodes > 1));
          REQUIRE(channel.net_out.has_value() == (nodes > 1));
        }
      }
      REQUIRE(graphs.ring.channel_count == graphs.tree.channel_count);
    }
  }
}

TEST_CASE("rings take no more of a link than it has", "[nccl]") {
  for (const PlainServer& server : property_servers()) {
    for (const bool multi_node : {false, true}) {
      const Machine machine(
          build_system({plain_server(server)}, {.ranks = std::nullopt, .nets = multi_node}),
          {.multi_node = multi_node});
      const Graph ring = search_graphs(machine).ring;
      BandwidthLedger ledger(machine.system());
      const auto intra = static_cast<float>(ring.bw_intra);
      const auto inter = static_cast<float>(ring.bw_inter);
      for (const GraphChannel& channel : ring.channels) {
        for (std::size_t position = 0; position + 1 < channel.gpus.size(); ++position) {
          const Path& path =
              machine.paths().gpu_gpu.at(channel.gpus[position], channel.gpus[position + 1]);
          REQUIRE(path.type <= ring.type_intra);
          REQUIRE(ledger.take(path, intra, true));
        }
        const int first = channel.gpus.front();
        const int last = channel.gpus.back();
        if (multi_node) {
          REQUIRE(ledger.take(machine.paths().net_gpu.at(*channel.net_in, first), inter, false));
          REQUIRE(ledger.take(machine.paths().gpu_net.at(last, *channel.net_out), inter, true));
        } else {
          REQUIRE(ledger.take(machine.paths().gpu_gpu.at(last, first), intra, true));
        }
      }
    }
  }
}

void add_noise(std::vector<NcclPci>& pcis) {
  for (NcclPci& pci : pcis) {
    pci.busid[1] = '3';  // Another PCI domain.
    for (NcclGpu& gpu : pci.gpus) {
      gpu.keep = 1;
    }
    for (NcclNic& nic : pci.nics) {
      for (NcclNet& net : nic.nets) {
        net.name = "other";
        net.guid = "0xabc" + net.guid->substr(2);
        net.maxconn = 7;
        net.gin = 1;
        net.keep = 1;
      }
    }
    add_noise(pci.pcis);
  }
}

TEST_CASE("what does not matter does not matter", "[nccl]") {
  for (const PlainServer& server : {h100_server(), a100_server(), pcie_server()}) {
    const NcclSystem plain = plain_server(server);
    NcclSystem noisy = plain;
    for (NcclCpu& cpu : noisy.cpus) {
      cpu.host_hash = "0x1234";
      cpu.affinity = "ffff";
      cpu.numaid += 4;
      add_noise(cpu.pcis);
    }
    const SearchOptions options{.multi_node = true};
    REQUIRE(search_graphs({plain}, options).ring == search_graphs({noisy}, options).ring);
    REQUIRE(search_graphs({plain}, options).tree == search_graphs({noisy}, options).tree);
  }
}

TEST_CASE("CollNet and NVLS are there where they can be", "[nccl]") {
  NcclSystem file = plain_server(h100_server());
  const SearchOptions collnet{.multi_node = true, .collnet = true};
  // No NIC says that it can.
  REQUIRE_FALSE(search_graphs({file}, collnet).collnet_chain.exists());
  for (NcclCpu& cpu : file.cpus) {
    for (NcclPci& bridge : cpu.pcis) {
      bridge.pcis[1].nics[0].nets[0].coll = 1;
    }
  }
  const GraphSet graphs = search_graphs({file}, collnet);
  REQUIRE(graphs.collnet_chain.exists());
  REQUIRE(graphs.collnet_chain.pattern == GraphPattern::Tree);
  REQUIRE(graphs.collnet_chain.channel_count == graphs.ring.channel_count);
  REQUIRE(graphs.collnet_direct.exists());
  REQUIRE(graphs.collnet_direct.channel_count == 8);
  REQUIRE_FALSE(search_graphs({file}, {.multi_node = true, .nvls = false}).nvls.exists());
  REQUIRE_FALSE(graphs_of(pcie_server(), 1).nvls.exists());
}

}  // namespace
}  // namespace trainyard::nccl
