// SPDX-License-Identifier: Apache-2.0
#include "nccl/machine/system.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "nccl/machine/gpu_ranks.h"
#include "nccl/machine/link_rates.h"
#include "nccl/machine/nic_devices.h"
#include "nccl/types/release.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "sim/ids.h"
#include "sim/printable.h"

namespace trainyard::nccl {
namespace {

std::uint64_t hex(const std::optional<std::string>& text) {
  return text ? std::strtoull(text->c_str(), nullptr, 16) : 0;
}

// "line 12: " where the element was read from a file.
std::string at(const FilePlace& place) {
  return place.line > 0 ? fmt::format("line {}: ", place.line) : "";
}

// The generation of the Broadcom PEX switches that show one chip as several bridges, PEX880xx and
// PEX890xx, else 0. They differ in the device of the subsystem (topo.cc:
// ncclTopoFlattenBcmSwitches).
int broadcom_generation(std::uint64_t pci_id) {
  const std::uint64_t chip = pci_id >> 16;
  return chip == 0x1000'c010'1000 ? 4 : chip == 0x1000'c030'1000 ? 5 : 0;
}

class SystemBuilder {
 public:
  SystemBuilder(const std::vector<NcclSystem>& servers, const SystemSelection& selection)
      : servers_(servers), selection_(selection), rank_of_(number_gpus(servers)) {}

  System build() {
    for (std::size_t index = 0; index < rank_of_.size(); ++index) {
      if (!selection_.ranks) {
        new_rank_.emplace(static_cast<int>(index), static_cast<int>(index));
      } else if (index < selection_.ranks->size()) {
        new_rank_.emplace((*selection_.ranks)[index], static_cast<int>(index));
      }
    }
    for (const NcclSystem& server : servers_) {
      next_dev_ = 0;
      for (const NcclCpu& cpu : server.cpus) {
        add_cpu(cpu);
      }
      dev_offset_ += next_dev_;
      ++system_.hosts;
    }
    if (system_.gpus.empty()) {
      throw ConfigError("the server: expected a GPU, found none");
    }
    for (const NvLinks& links : nvlinks_) {
      add_nvlinks(links);
    }
    for (const NvLinks& links : nvlinks_) {
      add_c2c(links);
    }
    add_switch_links();
    flatten_switches();
    connect_cpus();
    for (const SystemCpu& cpu : system_.cpus) {
      sort_edges(cpu.vertex, -1);
    }
    find_reverse();
    return std::move(system_);
  }

 private:
  struct NvLinks {
    const NcclGpu* gpu = nullptr;
    int device = 0;
    int host = 0;
    float rate = 0.0F;  // GB/s of one link.
    std::string busid = {};
  };
  struct SwitchLink {
    int pci = 0;
    int host = 0;
    std::string target = {};
  };

  // --- Devices ---------------------------------------------------------------------------------

  int add_vertex(VertexKind kind, int index = -1) {
    system_.vertices.push_back({.kind = kind, .host = system_.hosts, .index = index});
    return static_cast<int>(system_.vertices.size()) - 1;
  }

  [[nodiscard]] std::vector<int>& edges_of(int vertex) {
    return system_.vertices[as_index(vertex)].edges;
  }
  [[nodiscard]] Edge& edge(int index) { return system_.edges[as_index(index)]; }

  // Parallel links of one kind add up; a link that grows moves ahead of slower ones.
  void connect(int from, int to, EdgeKind kind, float bandwidth) {
    std::vector<int>& list = edges_of(from);
    auto found = std::find_if(list.begin(), list.end(), [&](int index) {
      return edge(index).to == to && edge(index).kind == kind;
    });
    if (found == list.end()) {
      system_.edges.push_back({.from = from, .to = to, .kind = kind});
      found = list.insert(list.end(), static_cast<int>(system_.edges.size()) - 1);
    }
    edge(*found).bandwidth += bandwidth;
    while (found != list.begin() && edge(*(found - 1)).bandwidth < edge(*found).bandwidth) {
      std::iter_swap(found - 1, found);
      --found;
    }
  }

  void connect_both(int a, int b, EdgeKind kind, float bandwidth) {
    connect(a, b, kind, bandwidth);
    connect(b, a, kind, bandwidth);
  }

  void add_cpu(const NcclCpu& xml) {
    const int vertex = add_vertex(VertexKind::Cpu, static_cast<int>(system_.cpus.size()));
    system_.cpus.push_back({.vertex = vertex,
                            .arch = arch_of(xml),
                            .vendor = vendor_of(xml),
                            .socket_bandwidth = socket_bandwidth(xml, selection_.version)});
    for (const NcclPci& pci : xml.pcis) {
      add_pci(pci, vertex);
    }
    // Adapters without a PCI device of their own.
    for (const NcclNic& nic : xml.nics) {
      const std::pair key(system_.hosts, std::string());
      if (!nics_.contains(key)) {
        nics_[key] = add_vertex(VertexKind::Nic);
        connect_both(vertex, nics_[key], EdgeKind::Pci, kLocalBandwidth);
      }
      add_nets(nic, nics_[key], false);
    }
  }

  void add_pci(const NcclPci& pci, int parent) {
    const float bandwidth = pcie_bandwidth(pci.link_speed.value_or(""), pci.link_width.value_or(0));
    if (!pci.gpus.empty()) {
      if (const std::optional<int> device = add_device(pci)) {
        connect_both(*device, parent, EdgeKind::Pci, bandwidth);
      }
      return;
    }
    if (!pci.nics.empty()) {
      // Functions of one card are one adapter, on the link of the first.
      const std::string busid = lower_case(pci.busid);
      const std::pair key(system_.hosts, busid.substr(0, busid.size() - 1));
      if (!nics_.contains(key)) {
        nics_[key] = add_vertex(VertexKind::Nic);
        connect_both(nics_[key], parent, EdgeKind::Pci, bandwidth);
      }
      for (const NcclNic& nic : pci.nics) {
        add_nets(nic, nics_[key], selection_.merge_ports);
      }
      return;
    }
    add_switch(pci, parent, bandwidth);
  }

  // NVSwitches and CPUs among the PCI devices stand elsewhere, and other devices do not matter.
  void add_switch(const NcclPci& pci, int parent, float bandwidth) {
    const std::string type = pci.device_class.value_or("");
    for (const std::string_view other : {"0x068000", "0x068001", "0x03", "0x02"}) {
      if (type.starts_with(other)) {
        return;
      }
    }
    const int vertex = add_vertex(VertexKind::Pci);
    system_.vertices.back().pci_id = hex(pci.vendor) << 48 | hex(pci.device) << 32 |
                                     hex(pci.subsystem_vendor) << 16 | hex(pci.subsystem_device);
    switch_of_bus_id_[{system_.hosts, lower_case(pci.busid)}] = vertex;
    for (const NcclPciLink& link : pci.pcilinks) {
      switch_links_.push_back(
          {.pci = vertex, .host = system_.hosts, .target = lower_case(link.target)});
    }
    for (const NcclPci& child : pci.pcis) {
      add_pci(child, vertex);
    }
    connect_both(vertex, parent, EdgeKind::Pci, bandwidth);
  }

  static const GpuGeneration& generation_of(const NcclGpu& gpu, const std::string& busid) {
    const std::string place = "the server: " + at(gpu.place);
    if (gpu.gcn) {
      if (const GpuGeneration* const known = amd_generation(*gpu.gcn)) {
        return *known;
      }
      throw ConfigError(fmt::format(
          "{}expected a GPU whose rules in RCCL are known: gfx90a, gfx942 or gfx950; found {}; "
          "--runtime plain takes any",
          place, *gpu.gcn));
    }
    if (!gpu.sm) {
      throw ConfigError(
          fmt::format("{}expected NVIDIA GPUs with the attribute sm, or AMD's with gcn, at {}, "
                      "found none; --runtime plain takes any",
                      place, busid));
    }
    return gpu_generation(*gpu.sm, place);
  }

  std::optional<int> add_device(const NcclPci& pci) {
    std::optional<int> device;
    for (const NcclGpu& gpu : pci.gpus) {
      const auto rank = new_rank_.find(rank_of_.at(&gpu));
      if (rank == new_rank_.end()) {
        continue;
      }
      const GpuGeneration& generation = generation_of(gpu, pci.busid);
      if (!device) {
        device = add_vertex(VertexKind::Device, static_cast<int>(system_.devices.size()));
        system_.devices.push_back(*device);
        device_of_bus_id_[{system_.hosts, lower_case(pci.busid)}] = *device;
        nvlinks_.push_back({.gpu = &gpu,
                            .device = *device,
                            .host = system_.hosts,
                            .rate = nvlink_bandwidth(selection_.version, generation),
                            .busid = lower_case(pci.busid)});
      }
      const int vertex = add_vertex(VertexKind::Gpu, static_cast<int>(system_.gpus.size()));
      system_.gpus.push_back({.vertex = vertex,
                              .device = *device,
                              .host = system_.hosts,
                              .dev = gpu.dev.value_or(rank_of_.at(&gpu)),
                              .rank = rank->second,
                              .generation = &generation,
                              .gdr = gpu.gdr.value_or(0) == 1});
      connect_both(vertex, *device, EdgeKind::Loc, kLocalBandwidth);
    }
    return device;
  }

  // Adds a port to the NIC that the adapter has already, if it has.
  bool merge_into(int adapter, float bandwidth, const NcclNet& port) {
    for (const int index : edges_of(adapter)) {
      const Vertex& vertex = system_.vertices[as_index(edge(index).to)];
      if (vertex.kind != VertexKind::Net) {
        continue;
      }
      SystemNet& net = system_.nets[as_index(vertex.index)];
      if (net.ports < kMaxMergedPorts) {
        ++net.ports;
        net.bandwidth += bandwidth;
        net.gdr = net.gdr && port.gdr.value_or(0) == 1;
        net.collnet = net.collnet && port.coll.value_or(0) == 1;
        connect_both(adapter, net.vertex, EdgeKind::Net, bandwidth);
        return true;
      }
    }
    return false;
  }

  void add_nets(const NcclNic& nic, int vertex, bool may_merge) {
    for (const NcclNet& xml : nic.nets) {
      if (!xml.dev || !selection_.nets) {
        continue;
      }
      next_dev_ = std::max(next_dev_, *xml.dev + 1);
      constexpr int kUnknownSpeed = 10'000;  // Some adapters say -1.
      const int speed = xml.speed.value_or(0) > 0 ? *xml.speed : kUnknownSpeed;
      const float bandwidth = static_cast<float>(speed / 8000.0);
      if (may_merge && merge_into(vertex, bandwidth, xml)) {
        continue;
      }
      SystemNet net{.vertex = add_vertex(VertexKind::Net, static_cast<int>(system_.nets.size())),
                    .host = system_.hosts,
                    .dev = dev_offset_ + *xml.dev,
                    .asic = xml.guid ? hex(xml.guid) : static_cast<std::uint64_t>(*xml.dev),
                    .port = xml.port.value_or(0),
                    .bandwidth = bandwidth,
                    .latency = static_cast<float>(xml.latency.value_or(0.0)),
                    .gdr = xml.gdr.value_or(0) == 1,
                    .collnet = xml.coll.value_or(0) == 1,
                    .rail = xml.rail,
                    .plane = xml.plane};
      connect_both(vertex, net.vertex, EdgeKind::Net, net.bandwidth);
      system_.nets.push_back(net);
    }
  }

  // --- Links -----------------------------------------------------------------------------------

  // The CPU above a device, through PCIe alone.
  std::optional<int> cpu_above(int vertex, int from) {
    if (system_.vertices[as_index(vertex)].kind == VertexKind::Cpu) {
      return vertex;
    }
    for (const int index : edges_of(vertex)) {
      const int next = edge(index).to;
      const VertexKind kind = system_.vertices[as_index(next)].kind;
      if (edge(index).kind == EdgeKind::Pci && next != from &&
          (kind == VertexKind::Pci || kind == VertexKind::Cpu)) {
        if (const std::optional<int> cpu = cpu_above(next, vertex)) {
          return cpu;
        }
      }
    }
    return std::nullopt;
  }

  void add_nvlinks(const NvLinks& links) {
    for (const NcclGpuLink& link :
         links.gpu->xgmis.empty() ? links.gpu->nvlinks : links.gpu->xgmis) {
      const float bandwidth = static_cast<float>(link.count) * links.rate;
      // AMD's are processing accelerators.
      if (link.tclass.starts_with("0x03") || link.tclass.starts_with("0x12")) {
        // A target that takes no part is as good as none.
        const auto peer = device_of_bus_id_.find({links.host, lower_case(link.target)});
        if (peer != device_of_bus_id_.end()) {
          connect(links.device, peer->second, EdgeKind::Nvl, bandwidth);
        }
      } else if (link.tclass.starts_with("0x068001")) {
        if (const std::optional<int> cpu = cpu_above(links.device, -1)) {
          connect_both(links.device, *cpu, EdgeKind::Nvl, bandwidth);
        }
      } else {
        if (!system_.nvswitch) {
          system_.nvswitch = add_vertex(VertexKind::NvSwitch, 0);
        }
        connect_both(links.device, *system_.nvswitch, EdgeKind::Nvl, bandwidth);
      }
    }
  }

  void add_c2c(const NvLinks& links) {
    for (const NcclC2c& link : links.gpu->c2cs) {
      const double bandwidth = static_cast<double>(link.bw) * link.count / 1000.0;
      if (const std::optional<int> cpu = cpu_above(links.device, -1)) {
        connect_both(links.device, *cpu, EdgeKind::C2c, static_cast<float>(bandwidth));
      }
    }
  }

  void add_switch_links() {
    for (const SwitchLink& link : switch_links_) {
      const auto target = switch_of_bus_id_.find({link.host, link.target});
      if (target != switch_of_bus_id_.end() && target->second != link.pci) {
        connect_both(link.pci, target->second, EdgeKind::Loc, kLocalBandwidth);
      }
    }
  }

  // Makes one switch of what one chip shows as bridges below a bridge.
  void flatten_switches() {
    for (std::size_t top = 0; top < system_.vertices.size(); ++top) {
      const std::uint64_t id = system_.vertices[top].pci_id;
      const int generation = broadcom_generation(id);
      if (generation == 0) {
        continue;
      }
      // Bridges that were lifted are not looked into again: a bridge keeps its own below it.
      const std::vector<int> before = system_.vertices[top].edges;
      for (const int down : before) {
        const int sub = edge(down).to;
        const Vertex& vertex = system_.vertices[as_index(sub)];
        if (edge(down).kind == EdgeKind::Pci && vertex.kind == VertexKind::Pci &&
            broadcom_generation(vertex.pci_id) == generation) {
          lift(sub, static_cast<int>(top), down);
        }
      }
      system_.vertices[top].pci_id = 0;
    }
  }

  // Hangs all below `sub` to `top`, of which `down` leads to it. The rest of `sub` is left alone.
  void lift(int sub, int top, int down) {
    std::erase(edges_of(top), down);
    const std::vector<int> moved = edges_of(sub);
    for (const int index : moved) {
      const int below = edge(index).to;
      if (below == top) {
        continue;
      }
      edge(index).from = top;
      edges_of(top).push_back(index);
      for (const int up : edges_of(below)) {
        if (edge(up).to == sub) {
          edge(up).to = top;
          break;
        }
      }
    }
    edges_of(sub).clear();
    system_.vertices[as_index(sub)].pci_id = 0;
  }

  void connect_cpus() {
    for (const SystemCpu& a : system_.cpus) {
      for (const SystemCpu& b : system_.cpus) {
        if (a.vertex != b.vertex && host_of(a.vertex) == host_of(b.vertex)) {
          connect(a.vertex, b.vertex, EdgeKind::Sys, a.socket_bandwidth);
        }
      }
    }
  }

  [[nodiscard]] int host_of(int vertex) const { return system_.vertices[as_index(vertex)].host; }

  // The way up is the last edge of every PCIe device.
  void sort_edges(int vertex, int up) {
    std::vector<int>& list = edges_of(vertex);
    if (up >= 0) {
      const auto upwards =
          std::find_if(list.begin(), list.end(), [&](int index) { return edge(index).to == up; });
      CHECK(upwards != list.end(), "every PCIe link has two directions");
      std::rotate(upwards, upwards + 1, list.end());
    }
    for (const int index : list) {
      if (edge(index).kind == EdgeKind::Pci && edge(index).to != up) {
        sort_edges(edge(index).to, vertex);
      }
    }
  }

  void find_reverse() {
    for (const Vertex& vertex : system_.vertices) {
      for (const int index : vertex.edges) {
        for (const int back : edges_of(edge(index).to)) {
          if (edge(back).to == edge(index).from && edge(back).kind == edge(index).kind) {
            edge(index).reverse = back;
          }
        }
        if (edge(index).reverse < 0) {
          throw ConfigError(fmt::format(
              "the server: expected the NVLinks between GPUs at both ends, found them at GPU {} "
              "and not at GPU {}",
              gpu_name(edge(index).from), gpu_name(edge(index).to)));
        }
      }
    }
  }

  [[nodiscard]] std::string gpu_name(int device) const {
    for (const NvLinks& links : nvlinks_) {
      if (links.device == device) {
        return links.busid;
      }
    }
    return "?";
  }

  const std::vector<NcclSystem>& servers_;
  const SystemSelection& selection_;
  std::map<const NcclGpu*, int> rank_of_;  // Only looked up.
  System system_;
  std::map<int, int> new_rank_;
  std::map<std::pair<int, std::string>, int> nics_;
  std::map<std::pair<int, std::string>, int> device_of_bus_id_;
  std::map<std::pair<int, std::string>, int> switch_of_bus_id_;
  std::vector<NvLinks> nvlinks_;
  std::vector<SwitchLink> switch_links_;
  int dev_offset_ = 0;
  int next_dev_ = 0;
};

}  // namespace

const GpuGeneration& System::oldest() const {
  return *std::ranges::min(gpus, {}, [](const SystemGpu& gpu) {
            return gpu.generation->compute_capability;
          }).generation;
}

System build_system(const std::vector<NcclSystem>& servers, const SystemSelection& selection) {
  return SystemBuilder(servers, selection).build();
}

}  // namespace trainyard::nccl
