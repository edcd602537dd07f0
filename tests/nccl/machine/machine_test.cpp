// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/machine/machine.h"

#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/nccl_servers.h"

namespace trainyard::nccl {
namespace {

Machine machine_of(const PlainServer& plain, const PathSettings& settings = {}) {
  return Machine(build_system({plain_server(plain)}, {}), {.multi_node = true, .paths = settings});
}

PathType between(const Machine& machine, int from, int to) {
  return machine.paths().gpu_gpu.at(from, to).type;
}

TEST_CASE("GPUs beyond a host bridge meet in host memory, on the side of the receiver", "[nccl]") {
  const Machine machine = machine_of(pcie_server());
  REQUIRE_FALSE(machine.has_peer_access(0, 1));
  REQUIRE(between(machine, 0, 1) == PathType::Phb);
  REQUIRE(between(machine, 0, 2) == PathType::Sys);
  const Path& path = machine.paths().gpu_gpu.at(0, 2);
  // Up to the CPU of GPU 2, then down.
  REQUIRE(path.edges == [&] {
    std::vector<int> edges = machine.paths().gpu_cpu.at(0, 1).edges;
    const std::vector<int>& down = machine.paths().cpu_gpu.at(1, 2).edges;
    edges.insert(edges.end(), down.begin(), down.end());
    return edges;
  }());
  const Machine forced = machine_of(pcie_server(), {.p2p_level = PathType::Sys});
  REQUIRE(forced.has_peer_access(0, 2));
  const Machine nvlink = machine_of(h100_server());
  REQUIRE(nvlink.has_peer_access(0, 7));
  const Machine disabled = machine_of(h100_server(), {.p2p_level = PathType::Loc});
  REQUIRE_FALSE(disabled.has_peer_access(0, 7));
  REQUIRE(between(disabled, 0, 1) == PathType::Phb);
  // Between the sockets their NICs are faster.
  REQUIRE(between(disabled, 0, 7) == PathType::Net);
}

TEST_CASE("two GPUs on an AMD host reach each other across sockets", "[nccl]") {
  PlainServer pair = pcie_server();
  pair.gpus = 2;
  REQUIRE_FALSE(machine_of(pair).has_peer_access(0, 1));
  pair.vendor = "AuthenticAMD";
  REQUIRE(machine_of(pair).has_peer_access(0, 1));
  PlainServer four = pcie_server();
  four.vendor = "AuthenticAMD";
  REQUIRE_FALSE(machine_of(four).has_peer_access(0, 1));
}

TEST_CASE("a GPU sends to the NIC of another through that GPU, and does not receive so", "[nccl]") {
  const Machine machine = machine_of(h100_server());
  const Path& path = machine.paths().gpu_net.at(0, 5);
  REQUIRE(path.type == PathType::Pxn);
  REQUIRE(path.bandwidth == 48.0F);
  REQUIRE(machine.pxn_gpu(0, 5) == 5);
  REQUIRE(machine.paths().net_gpu.at(5, 0).type == PathType::Sys);
  REQUIRE(machine.paths().net_gpu.at(1, 0).type == PathType::Phb);
  REQUIRE(machine.has_gpudirect(0, 5, true));
  REQUIRE_FALSE(machine.pxn_gpu(0, 0));
  const Machine without = machine_of(h100_server(), {.pxn_disable = true});
  REQUIRE(without.paths().gpu_net.at(0, 5).type == PathType::Sys);
  REQUIRE_FALSE(without.has_gpudirect(0, 5, true));
}

TEST_CASE("without GPUDirect the way to the NIC leads through the CPU", "[nccl]") {
  PlainServer plain = h100_server();
  plain.gpudirect = false;
  const Machine machine = machine_of(plain);
  REQUIRE_FALSE(machine.has_gpudirect(0, 0, true));
  REQUIRE(machine.paths().gpu_net.at(0, 0).type == PathType::Phb);
  REQUIRE(machine.paths().net_gpu.at(0, 0).type == PathType::Phb);
  const Machine near = machine_of(h100_server(), {.net_gdr_level = PathType::Loc});
  REQUIRE(near.paths().gpu_net.at(0, 0).type == PathType::Phb);
}

TEST_CASE("before Ampere a NIC reads only from GPUs with NVLink", "[nccl]") {
  PlainServer volta = pcie_server();
  volta.sm = 70;
  REQUIRE_FALSE(machine_of(volta).has_gpudirect(0, 0, true));
  REQUIRE(machine_of(volta).has_gpudirect(0, 0, false));
  REQUIRE(machine_of(volta, {.net_gdr_read = true}).has_gpudirect(0, 0, true));
  volta.nvlinks = 6;
  REQUIRE(machine_of(volta).has_gpudirect(0, 0, true));
  REQUIRE(machine_of(pcie_server()).has_gpudirect(0, 0, true));
  REQUIRE_FALSE(machine_of(pcie_server(), {.net_gdr_read = false}).has_gpudirect(0, 0, true));
}

TEST_CASE("receives by GPUDirect are flushed before Hopper", "[nccl]") {
  REQUIRE(machine_of(a100_server()).needs_flush(0, 0));
  REQUIRE_FALSE(machine_of(h100_server()).needs_flush(0, 0));
  PlainServer staged = a100_server();
  staged.gpudirect = false;
  REQUIRE_FALSE(machine_of(staged).needs_flush(0, 0));
  NcclSystem file = plain_server(h100_server());
  file.cpus[0].pcis[0].pcis[0].gpus[0].c2cs.push_back({.bw = 44'712, .count = 10});
  const Machine beside(build_system({file}, {}), {.multi_node = true});
  REQUIRE(beside.needs_flush(0, 0));
}

TEST_CASE("Ampere pulls over NVLink, others push", "[nccl]") {
  REQUIRE(machine_of(a100_server()).reads_from_peer(0, 1));
  REQUIRE_FALSE(machine_of(h100_server()).reads_from_peer(0, 1));
  REQUIRE_FALSE(machine_of(a100_server(), {.p2p_read = false}).reads_from_peer(0, 1));
  REQUIRE(machine_of(h100_server(), {.p2p_read = true}).reads_from_peer(0, 1));
}

NcclSystem servers_on_c2c() {
  NcclSystem file = plain_server({.gpus = 2, .nvlinks = 0, .nic_every = 1});
  for (NcclCpu& cpu : file.cpus) {
    cpu.arch = "arm64";
    cpu.vendor = {};
    // The NIC beside the GPU, not below the same switch.
    NcclPci nic = cpu.pcis[0].pcis[1];
    cpu.pcis[0].pcis.pop_back();
    cpu.pcis.push_back(nic);
    cpu.pcis[0].pcis[0].gpus[0].c2cs.push_back({.bw = 44'712, .count = 10});
  }
  return file;
}

TEST_CASE("a GPU on C2C has the NICs of its CPU at P2C", "[nccl]") {
  const NcclSystem file = servers_on_c2c();
  const Machine machine(build_system({file}, {}), {.multi_node = true});
  REQUIRE(machine.paths().gpu_net.at(0, 0).type == PathType::P2c);
  REQUIRE(machine.paths().net_gpu.at(0, 0).type == PathType::P2c);
  REQUIRE(machine.paths().gpu_net.at(0, 0).bandwidth == 48.0F);
  REQUIRE(machine.has_gpudirect(0, 0, true));
  const Machine strict(build_system({file}, {}),
                       {.multi_node = true, .paths = {.net_gdr_c2c = false}});
  REQUIRE_FALSE(strict.has_gpudirect(0, 0, true));
  // In host memory the data takes the same way.
  REQUIRE(strict.paths().gpu_net.at(0, 0).type == PathType::P2c);
  REQUIRE(strict.paths().net_gpu.at(0, 0).type == PathType::P2c);
}

// NVIDIA/nccl, src/graph/paths.cc at the tags: PATH_P2C and NCCL_NET_GDR_C2C=1 by default from 2.27
// on, that variable alone in 2.26, neither before.
TEST_CASE("before 2.27 the NICs of a CPU on C2C are behind its host bridge", "[nccl]") {
  const auto machine = [](Version version, const PathSettings& paths) {
    return Machine(build_system({servers_on_c2c()}, {}),
                   {.version = version, .multi_node = true, .paths = paths});
  };
  for (const Version version : {Version::V2_25, Version::V2_26}) {
    REQUIRE(machine(version, {}).paths().gpu_net.at(0, 0).type == PathType::Phb);
    REQUIRE_FALSE(machine(version, {}).has_gpudirect(0, 0, true));
    REQUIRE(machine(version, {.net_gdr_level = PathType::Phb}).has_gpudirect(0, 0, true));
  }
  REQUIRE_FALSE(machine(Version::V2_25, {.net_gdr_c2c = true}).has_gpudirect(0, 0, true));
  REQUIRE(machine(Version::V2_26, {.net_gdr_c2c = true}).has_gpudirect(0, 0, true));
  REQUIRE(machine(Version::V2_27, {}).paths().gpu_net.at(0, 0).type == PathType::P2c);
  REQUIRE(machine(Version::V2_27, {}).has_gpudirect(0, 0, true));
}

// PATH_PXN came with 2.12.
TEST_CASE("from 2.12 on a GPU sends through one that is near the NIC", "[nccl]") {
  const auto type = [](Version version) {
    const Machine machine(build_system({plain_server(h100_server())}, {}),
                          {.version = version, .multi_node = true});
    return machine.paths().gpu_net.at(1, 0).type;
  };
  REQUIRE(type(Version::V2_10) > PathType::Pxn);
  REQUIRE(type(Version::V2_12) == PathType::Pxn);
}

TEST_CASE("each GPU takes its own NICs in turns", "[nccl]") {
  PlainServer plain = h100_server();
  plain.nics_per_gpu = 2;
  const Machine machine = machine_of(plain);
  REQUIRE(machine.nearest_nets(3) == std::vector{6, 7});
  REQUIRE(machine.nearest_gpus(7) == std::vector{3});
  REQUIRE(machine.nets_per_gpu(3) == 2);
  REQUIRE(machine.net_of(3, 0) == 6);
  REQUIRE(machine.net_of(3, 1) == 7);
  REQUIRE(machine.net_of(3, 2) == 6);
  REQUIRE(machine.gpu_of(7) == 3);
  const Machine one = machine_of(plain, {.max_nets_per_gpu = 1});
  REQUIRE(one.nets_per_gpu(3) == 1);
  REQUIRE(one.net_of(3, 1) == 6);
  REQUIRE_FALSE(one.gpu_of(7));
}

TEST_CASE("GPUs that share NICs spread over them, far apart first", "[nccl]") {
  // Four GPUs and four NICs below one switch.
  NcclSystem file = plain_server({.gpus = 4, .sm = 80, .nvlinks = 0, .sockets = 1});
  NcclPci& bridge = file.cpus[0].pcis[0];
  for (std::size_t other = 1; other < 4; ++other) {
    const NcclPci& emptied = file.cpus[0].pcis[other];
    bridge.pcis.insert(bridge.pcis.end(), emptied.pcis.begin(), emptied.pcis.end());
  }
  file.cpus[0].pcis.resize(1);
  const Machine machine(build_system({file}, {}), {.multi_node = true});
  std::vector<int> nets;
  for (int gpu = 0; gpu < 4; ++gpu) {
    REQUIRE(machine.nets_per_gpu(gpu) == 1);
    nets.push_back(*machine.net_of(gpu, 0));
  }
  REQUIRE(nets == std::vector{0, 2, 1, 3});
}

TEST_CASE("sends leave on the rail of the receiver", "[nccl]") {
  using Way = Machine::SendWay;
  const Machine machine = machine_of(h100_server());
  REQUIRE(machine.send_way(0, 0, 5) == Way{.net = 5, .gpu = 5});
  REQUIRE(machine.send_way(5, 3, 5) == Way{.net = 5, .gpu = 5});
  // No such GPU here.
  REQUIRE(machine.send_way(0, 0, 12) == Way{.net = 0, .gpu = 0});
  const Machine needed = machine_of(h100_server(), {.p2p_pxn_level = 1});
  REQUIRE(needed.send_way(0, 0, 5) == Way{.net = 5, .gpu = 5});
  const Machine never = machine_of(h100_server(), {.p2p_pxn_level = 0});
  REQUIRE(never.send_way(0, 0, 5) == Way{.net = 0, .gpu = 0});
  const Machine same_rail = machine_of(h100_server(), {.cross_nic = 0, .pxn_disable = true});
  REQUIRE(same_rail.send_way(0, 0, 5) == Way{.net = 5, .gpu = 0});
  // Without NVLink nobody hands over.
  REQUIRE(machine_of(pcie_server()).send_way(0, 0, 2) == Way{.net = 0, .gpu = 0});
}

TEST_CASE("NICs that are faster than the way between sockets divide the server", "[nccl]") {
  PlainServer plain = pcie_server();
  plain.nic_every = 1;
  plain.nic_speed = 200'000;
  plain.model = 0x55;  // 10 GB/s between the sockets.
  const std::vector<MachinePart> parts = make_machines({plain_server(plain)}, {});
  REQUIRE(parts.size() == 2);
  REQUIRE(parts[0].ranks == std::vector{0, 1});
  REQUIRE(parts[1].ranks == std::vector{2, 3});
  REQUIRE(parts[1].machine.net_count() == 4);
  REQUIRE(parts[1].machine.options().multi_node);
  REQUIRE(make_machines({plain_server(plain)}, {.paths = {.net_disable_intra = true}}).size() == 1);
}

TEST_CASE("GPUs that share no memory at all are nodes of their own", "[nccl]") {
  PlainServer plain = pcie_server();
  plain.nic_speed = 10'000;
  const std::vector<NcclSystem> file{plain_server(plain)};
  REQUIRE(make_machines(file, {.multi_node = true}).size() == 1);
  const auto parts = make_machines(file, {.multi_node = true, .paths = {.shm_disable = true}});
  REQUIRE(parts.size() == static_cast<std::size_t>(plain.gpus));
}

TEST_CASE("flushes can be forced and forbidden", "[nccl]") {
  REQUIRE_FALSE(machine_of(h100_server()).needs_flush(0, 0));
  REQUIRE(machine_of(h100_server(), {.net_force_flush = true}).needs_flush(0, 0));
  REQUIRE_FALSE(machine_of(a100_server(), {.gdr_flush_disable = true}).needs_flush(0, 0));
}

TEST_CASE("one node forgets its NICs, several need one", "[nccl]") {
  REQUIRE(make_machines({plain_server(h100_server())}, {})[0].machine.net_count() == 0);
  PlainServer plain = h100_server();
  plain.nics_per_gpu = 0;
  REQUIRE_THROWS_WITH(make_machines({plain_server(plain)}, {.multi_node = true}),
                      "the server: expected a NIC, as there are several nodes, found none");
}

TEST_CASE("hosts of one NVLink domain are one node, without PXN from host to host", "[nccl]") {
  PlainServer tray = b200_server();
  tray.gpus = 4;
  const std::vector<NcclSystem> files(3, plain_server(tray));
  const std::vector<MachinePart> parts = make_machines(files, {.multi_node = true});
  REQUIRE(parts.size() == 1);
  const Machine& machine = parts[0].machine;
  REQUIRE(machine.gpu_count() == 12);
  REQUIRE(between(machine, 0, 11) == PathType::Nvl);
  REQUIRE(machine.paths().gpu_net.at(0, 1).type == PathType::Pxn);
  REQUIRE(machine.paths().gpu_net.at(0, 4).type == PathType::Dis);
}

TEST_CASE("the GPU in the middle of an NVB path is known", "[nccl]") {
  NcclSystem file = plain_server({.gpus = 4, .sm = 70, .nvlinks = 0});
  const auto join = [&](int from, int to) {
    NcclCpu& cpu = file.cpus[static_cast<std::size_t>(from / 2)];
    cpu.pcis[static_cast<std::size_t>(from % 2)].pcis[0].gpus[0].nvlinks.push_back(
        {.target = fmt::format("0000:{:02x}:00.0", 0x11 + 0x10 * to),
         .count = 1,
         .tclass = "0x030200"});
  };
  for (const auto& [a, b] : std::vector<std::pair<int, int>>{{0, 1}, {1, 2}, {2, 3}}) {
    join(a, b);
    join(b, a);
  }
  const Machine machine(build_system({file}, {}), {});
  REQUIRE(machine.nvlink_relay(0, 2) == 1);
  REQUIRE(machine.has_peer_access(0, 2));
  REQUIRE_FALSE(machine.nvlink_relay(0, 1));
  REQUIRE_FALSE(machine.nvlink_relay(0, 3));
}

}  // namespace
}  // namespace trainyard::nccl
