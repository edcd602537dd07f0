// SPDX-License-Identifier: Apache-2.0
#include "nccl/machine/machine.h"

#include <algorithm>
#include <utility>

#include "nccl/types/release.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "sim/ids.h"

namespace trainyard::nccl {
namespace {

// Targets of greatest bandwidth, of those the ones of least type.
std::vector<int> nearest(const PathTable& table, int source) {
  std::vector<int> found;
  PathType type = PathType::Dis;
  float bandwidth = 0.0F;
  for (int target = 0; target < table.targets(); ++target) {
    const Path& path = table.at(source, target);
    if (path.bandwidth > bandwidth || (path.bandwidth == bandwidth && path.type < type)) {
      bandwidth = path.bandwidth;
      type = path.type;
      found.clear();
    }
    if (path.bandwidth == bandwidth && path.type == type) {
      found.push_back(target);
    }
  }
  return found;
}

bool is_power_of_two(int value) {
  return value > 0 && (value & (value - 1)) == 0;
}

// The bits of `value` below `size`, a power of two, in reverse order.
int mirrored(int value, int size) {
  int result = 0;
  for (int bit = 1, image = size / 2; bit < size; bit *= 2, image /= 2) {
    result |= (value & bit) != 0 ? image : 0;
  }
  return result;
}

// Returns the type of a path that another one continues. From C2C to PCIe at a CPU, or back, is
// P2C.
PathType merged(PathType first, PathType second) {
  const PathType worse = std::max(first, second);
  const bool is_p2c = worse == PathType::Phb && std::min(first, second) == PathType::C2c;
  return is_p2c ? PathType::P2c : worse;
}

}  // namespace

Machine::Machine(System system, const SearchOptions& options)
    : system_(std::move(system)),
      options_(options),
      rules_(release(options.version, system_.oldest())),
      paths_(find_paths(system_, !options.paths.nvb_disable)) {
  adjust_between_gpus();
  adjust_c2c();
  adjust_to_nets();
}

// --- Adjustments -------------------------------------------------------------------------------

void Machine::divert(Path& path, const Path& first, const Path& second) {
  Path way = first;
  way.edges.insert(way.edges.end(), second.edges.begin(), second.edges.end());
  way.type = merged(first.type, second.type);
  way.bandwidth = std::min(first.bandwidth, second.bandwidth);
  path = std::move(way);
}

// Chooses by fewest links; the first of equally near ones.
int Machine::nearest_cpu(int gpu) const {
  int nearest = -1;
  std::size_t min = 0;
  for (int cpu = 0; cpu < paths_.gpu_cpu.targets(); ++cpu) {
    const std::size_t links = paths_.gpu_cpu.at(gpu, cpu).edges.size();
    if (links > 0 && (nearest < 0 || links < min)) {
      nearest = cpu;
      min = links;
    }
  }
  CHECK(nearest >= 0, "every GPU hangs below a CPU");
  return nearest;
}

PathType Machine::peer_level() const {
  const SystemCpu& cpu = system_.cpus.front();
  constexpr std::size_t kPair = 2;
  constexpr float kBroadwell = 6.0F;  // GB/s between sockets.
  const bool intel = cpu.arch == CpuArch::X86 && cpu.vendor == CpuVendor::Intel;
  const bool others = cpu.arch == CpuArch::Arm || cpu.vendor == CpuVendor::Zhaoxin;
  const bool broadwell = intel && cpu.socket_bandwidth <= kBroadwell;
  const bool amd = cpu.arch == CpuArch::X86 && cpu.vendor == CpuVendor::Amd;
  switch (rules_.peers) {
    case PeerRule::WithinSocket:
      return PathType::Phb;
    case PeerRule::NotBroadwell:
      return broadwell || others ? PathType::Pxb : PathType::Sys;
    case PeerRule::IntelWithinSocket:
      return broadwell || others ? PathType::Pxb : intel ? PathType::Phb : PathType::Sys;
    case PeerRule::NotIntel:
      return intel || others ? PathType::Pxb : PathType::Sys;
    case PeerRule::SwitchesOrAmdPairs:
      break;
  }
  return amd && system_.gpus.size() <= kPair ? PathType::Sys : PathType::Pxb;
}

// paths.cc: ncclTopoCheckP2p. It is assumed that the driver allows it.
bool Machine::may_access_peer(int from, int to) const {
  const PathType level = options_.paths.p2p_level.value_or(peer_level());
  return paths_.gpu_gpu.at(from, to).type <= level;
}

// paths.cc: ncclTopoCheckNet. Two GPUs that both reach a NIC faster than each other use the NICs.
bool Machine::prefers_network(int from, int to) const {
  if (options_.paths.net_disable_intra) {
    return false;
  }
  const auto fastest = [&](int gpu) {
    float bandwidth = 0.0F;
    for (int net = 0; net < net_count(); ++net) {
      const Path& path = paths_.gpu_net.at(gpu, net);
      if (path.type <= PathType::Pxb) {
        bandwidth = std::max(bandwidth, path.bandwidth);
      }
    }
    return bandwidth;
  };
  const float direct = paths_.gpu_gpu.at(from, to).bandwidth;
  return fastest(from) > direct && fastest(to) > direct;
}

void Machine::adjust_between_gpus() {
  peer_access_.assign(system_.gpus.size() * system_.gpus.size(), true);
  for (int to = 0; to < gpu_count(); ++to) {
    for (int from = 0; from < gpu_count(); ++from) {
      if (!may_access_peer(from, to)) {
        peer_access_[position(from, to)] = false;
        const int cpu = nearest_cpu(to);
        divert(paths_.gpu_gpu.at(from, to), paths_.gpu_cpu.at(from, cpu),
               paths_.cpu_gpu.at(cpu, to));
      }
    }
    for (int from = 0; from < gpu_count(); ++from) {
      const bool is_relayed = has_peer_access(from, to) && nvlink_relay(from, to);
      const bool is_cut_off = !has_peer_access(from, to) && options_.paths.shm_disable;
      if (from != to && (is_cut_off || (!is_relayed && prefers_network(from, to)))) {
        paths_.gpu_gpu.at(from, to).type = PathType::Net;
      }
    }
  }
}

// A GPU on C2C to the CPU over whose PCIe it reaches a NIC.
void Machine::adjust_c2c() {
  if (rules_.nics_over_c2c != NicsOverC2c::Near) {
    return;
  }
  for (int net = 0; net < net_count(); ++net) {
    for (int gpu = 0; gpu < gpu_count(); ++gpu) {
      Path& path = paths_.gpu_net.at(gpu, net);
      if (path.type == PathType::Phb && is_on_c2c(gpu)) {
        path.type = PathType::P2c;
        paths_.net_gpu.at(net, gpu).type = PathType::P2c;
      }
    }
  }
}

bool Machine::is_on_c2c(int gpu) const {
  return paths_.gpu_cpu.at(gpu, nearest_cpu(gpu)).type == PathType::C2c;
}

// How far from a NIC a GPU may be that others hand over to.
PathType Machine::farthest_relay() const {
  return options_.paths.pxn_c2c.value_or(rules_.hands_over_from_c2c) ? PathType::P2c
                                                                     : PathType::Pxb;
}

bool Machine::hands_over() const {
  return rules_.hands_over && !options_.paths.pxn_disable;
}

bool Machine::may_relay(int relay, int gpu, int net) const {
  const Path& own = paths_.gpu_net.at(gpu, net);
  const Path& relayed = paths_.gpu_net.at(relay, net);
  const auto host = [&](int index) { return system_.gpus[as_index(index)].host; };
  return relayed.type <= farthest_relay() && paths_.gpu_gpu.at(relay, gpu).type <= PathType::Nvl &&
         host(relay) == host(gpu) &&
         (relayed.bandwidth > own.bandwidth || own.type > PathType::Pxn);
}

// Asks anew each time what is nearest to what, as NCCL does, while paths change.
void Machine::adjust_to_nets() {
  for (int net = 0; net < net_count(); ++net) {
    for (int gpu = 0; gpu < gpu_count(); ++gpu) {
      Path& path = paths_.gpu_net.at(gpu, net);
      if (hands_over()) {
        const std::optional<int> relay = gpu_of(net);
        if (relay && *relay != gpu && may_relay(*relay, gpu, net)) {
          divert(path, paths_.gpu_gpu.at(gpu, *relay), paths_.gpu_net.at(*relay, net));
          path.type = PathType::Pxn;
        }
      }
      if (path.type < PathType::Phb && !has_gpudirect(gpu, net, false)) {
        const int cpu = nearest_cpu(gpu);
        divert(paths_.net_gpu.at(net, gpu), paths_.net_cpu.at(net, cpu),
               paths_.cpu_gpu.at(cpu, gpu));
        divert(path, paths_.gpu_cpu.at(gpu, cpu), paths_.cpu_net.at(cpu, net));
      }
    }
  }
}

// --- Questions ---------------------------------------------------------------------------------

std::optional<int> Machine::nvlink_relay(int from, int to) const {
  const Path& path = paths_.gpu_gpu.at(from, to);
  if (path.type != PathType::Nvb) {
    return std::nullopt;
  }
  // GPU, its device, the device between.
  constexpr std::size_t kBetween = 1;
  const int device = system_.edges[as_index(path.edges[kBetween])].to;
  for (int gpu = 0; gpu < gpu_count(); ++gpu) {
    if (system_.gpus[as_index(gpu)].device == device) {
      return gpu;
    }
  }
  return std::nullopt;
}

bool Machine::reads_from_peer(int from, int to) const {
  if (options_.paths.p2p_read) {
    return *options_.paths.p2p_read;
  }
  return paths_.gpu_gpu.at(from, to).type == PathType::Nvl &&
         system_.gpus[as_index(from)].generation->reads_from_peers &&
         system_.gpus[as_index(to)].generation->reads_from_peers;
}

std::optional<int> Machine::pxn_gpu(int gpu, int net) const {
  const Path& path = paths_.gpu_net.at(gpu, net);
  if (path.type != PathType::Pxn) {
    return std::nullopt;
  }
  for (const int index : path.edges) {
    const int vertex = system_.edges[as_index(index)].to;
    if (system_.vertices[as_index(vertex)].kind == VertexKind::Gpu) {
      return system_.vertices[as_index(vertex)].index;
    }
  }
  CHECK(false, "a path of type PXN has a GPU in it");
  return std::nullopt;
}

// paths.cc: ncclTopoCheckGdr.
bool Machine::has_gpudirect(int gpu, int net, bool is_send) const {
  const SystemGpu& own = system_.gpus[as_index(gpu)];
  if (!system_.nets[as_index(net)].gdr || !own.gdr) {
    return false;
  }
  if (is_send && options_.paths.net_gdr_read.has_value() && !*options_.paths.net_gdr_read) {
    return false;
  }
  if (is_send && !options_.paths.net_gdr_read && own.generation->needs_nvlink_to_send &&
      gpu_count() > 1) {
    bool has_nvlink = false;
    for (int peer = 0; peer < gpu_count(); ++peer) {
      has_nvlink |= peer != gpu && paths_.gpu_gpu.at(gpu, peer).type == PathType::Nvl;
    }
    if (!has_nvlink) {
      return false;
    }
  }
  const PathType level = options_.paths.net_gdr_level.value_or(
      options_.paths.net_gdr_c2c.value_or(true) ? PathType::P2c : PathType::Pxb);
  const int nearest = pxn_gpu(gpu, net).value_or(gpu);
  const PathType type = paths_.gpu_net.at(nearest, net).type;
  const bool asks_for_c2c = rules_.nics_over_c2c == NicsOverC2c::FarOnPath &&
                            options_.paths.net_gdr_c2c.value_or(false) && is_on_c2c(nearest);
  return type <= level || (type == PathType::Phb && asks_for_c2c);
}

// paths.cc: ncclTopoNeedFlush.
bool Machine::needs_flush(int gpu, int net) const {
  if (!has_gpudirect(gpu, net, false) || options_.paths.gdr_flush_disable) {
    return false;
  }
  if (options_.paths.net_force_flush) {
    return true;
  }
  return system_.gpus[as_index(gpu)].generation->needs_flush ||
         (is_on_c2c(gpu) && paths_.net_gpu.at(net, gpu).type <= PathType::Pxb);
}

std::vector<int> Machine::nearest_nets(int gpu) const {
  return nearest(paths_.gpu_net, gpu);
}

std::vector<int> Machine::nearest_gpus(int net) const {
  return nearest(paths_.net_gpu, net);
}

// topo.cc: ncclTopoGetLocalNetType.
int Machine::nets_per_gpu(int gpu) const {
  const std::vector<int> nets = nearest_nets(gpu);
  const int count = static_cast<int>(nets.size());
  if (options_.paths.max_nets_per_gpu) {
    return std::min(count, *options_.paths.max_nets_per_gpu);
  }
  if (count == 0) {
    return 0;
  }
  const int gpus = static_cast<int>(nearest_gpus(nets.front()).size());
  return (count + gpus - 1) / gpus;
}

std::optional<int> Machine::net_of(int gpu, int channel) const {
  const std::vector<int> nets = nearest_nets(gpu);
  const int count = static_cast<int>(nets.size());
  if (count == 0) {
    return std::nullopt;
  }
  const int gpus = static_cast<int>(nearest_gpus(nets.front()).size());
  int first = system_.gpus[as_index(gpu)].dev;
  if (options_.version >= Version::V2_30) {
    // Among the GPUs of the job: where it has one of two that share two NICs, the first NIC.
    first %= gpus;
  }
  if (is_power_of_two(count)) {
    first = mirrored(first, count);
  }
  const int turn = channel % std::max(nets_per_gpu(gpu), 1);
  return nets[as_index((first + turn) % count)];
}

std::optional<int> Machine::gpu_of(int net) const {
  const std::vector<int> gpus = nearest_gpus(net);
  for (int channel = 0; channel < kMaxChannels; ++channel) {
    for (const int gpu : gpus) {
      if (net_of(gpu, channel) == net) {
        return gpu;
      }
    }
  }
  return std::nullopt;
}

// search.cc: ncclTopoGetNetDev without a graph.
std::optional<Machine::SendWay> Machine::send_way(int gpu, int channel, int peer_dev) const {
  const std::optional<int> own = net_of(gpu, channel);
  if (!own) {
    return std::nullopt;
  }
  SendWay way{.net = *own, .gpu = gpu};
  const int level = hands_over() ? options_.paths.p2p_pxn_level : 0;
  const SystemGpu& sender = system_.gpus[as_index(gpu)];
  const auto twin = std::find_if(
      system_.gpus.begin(), system_.gpus.end(),
      [&](const SystemGpu& other) { return other.host == sender.host && other.dev == peer_dev; });
  if ((options_.paths.cross_nic != 0 && level == 0) || twin == system_.gpus.end()) {
    return way;
  }
  const int rail = net_of(static_cast<int>(twin - system_.gpus.begin()), channel).value_or(*own);
  if (options_.paths.cross_nic == 0) {
    way.net = rail;
  }
  if (level == 1 && paths_.gpu_net.at(gpu, rail).type <= PathType::Pxn) {
    return SendWay{.net = rail, .gpu = pxn_gpu(gpu, rail).value_or(gpu)};
  }
  const std::optional<int> relay = gpu_of(rail);
  if (level == 2 && relay && paths_.gpu_gpu.at(*relay, gpu).type <= PathType::Nvl &&
      paths_.gpu_net.at(*relay, rail).type <= farthest_relay()) {
    return SendWay{.net = rail, .gpu = *relay};
  }
  return way;
}

// paths.cc: ncclTopoTrimSystem.
std::vector<std::vector<int>> Machine::groups() const {
  std::vector<int> group(system_.gpus.size());
  for (int gpu = 0; gpu < gpu_count(); ++gpu) {
    int& own = group[as_index(gpu)];
    own = gpu;
    for (int peer = 0; peer < gpu; ++peer) {
      if (paths_.gpu_gpu.at(gpu, peer).type < PathType::Net) {
        own = std::min(own, group[as_index(peer)]);
      }
    }
  }
  std::vector<std::vector<int>> groups;
  for (int first = 0; first < gpu_count(); ++first) {
    std::vector<int> members;
    for (int gpu = 0; gpu < gpu_count(); ++gpu) {
      if (group[as_index(gpu)] == first) {
        members.push_back(gpu);
      }
    }
    if (!members.empty()) {
      groups.push_back(std::move(members));
    }
  }
  return groups;
}

std::vector<MachinePart> make_machines(const std::vector<NcclSystem>& servers,
                                       const SearchOptions& options) {
  const Machine whole(
      build_system(servers, {.merge_ports = options.merge_ports, .version = options.version}),
      options);
  const std::vector<std::vector<int>> groups = whole.groups();
  SearchOptions part_options = options;
  part_options.multi_node = options.multi_node || groups.size() > 1;
  if (part_options.multi_node && whole.net_count() == 0) {
    throw ConfigError("the server: expected a NIC, as there are several nodes, found none");
  }
  std::vector<MachinePart> parts;
  for (const std::vector<int>& group : groups) {
    std::vector<int> ranks;
    for (const int gpu : group) {
      ranks.push_back(whole.system().gpus[as_index(gpu)].rank);
    }
    std::sort(ranks.begin(), ranks.end());
    // NCCL forgets the NICs where it does not need them.
    System system = build_system(servers, {.ranks = ranks,
                                           .nets = part_options.multi_node,
                                           .merge_ports = options.merge_ports,
                                           .version = options.version});
    parts.push_back(
        {.ranks = std::move(ranks), .machine = Machine(std::move(system), part_options)});
  }
  return parts;
}

}  // namespace trainyard::nccl
