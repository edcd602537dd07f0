// SPDX-License-Identifier: Apache-2.0
#include "topology/exchange/server_export.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "sim/check.h"
#include "sim/config_error.h"
#include "topology/exchange/import_parts.h"

namespace trainyard {
namespace {

// PCI classes: base class and subclass of the PCI Code and ID Assignment Specification; that of
// AMD's accelerators and of the NVSwitches as their devices state them.
constexpr std::string_view kBridge = "0x060400";
constexpr std::string_view kNvidiaGpu = "0x030200";
constexpr std::string_view kAmdGpu = "0x120000";
constexpr std::string_view kNicClass = "0x020000";
constexpr std::string_view kNvSwitch = "0x068000";

// --- From the topology -------------------------------------------------------------------------

class TreeBuilder {
 public:
  TreeBuilder(const Topology& topology, ServerId server) : topology_(topology) {
    const bool network = has_network(topology);
    for (std::uint32_t index = 0; index < topology.node_count(); ++index) {
      const NodeId id(index);
      const Node& node = topology.node(id);
      if (node.server != server) {
        continue;
      }
      if (node.kind == NodeKind::Gpu) {
        gpus_.emplace(id, static_cast<int>(gpus_.size()));
      } else if (node.kind == NodeKind::Nic && is_live_nic(topology, id, network)) {
        nics_.emplace(id, static_cast<int>(nics_.size()));
      } else if (node.kind == NodeKind::Cpu) {
        cpus_.push_back(id);
      }
    }
  }

  ServerOutline build() {
    ServerOutline tree =
        empty_server(static_cast<int>(gpus_.size()), static_cast<int>(nics_.size()));
    for (const NodeId cpu : cpus_) {
      tree.sockets.push_back(branches_of(cpu));
      tree.cpu = part_of(cpu);
    }
    require_below_cpu(gpus_);
    require_below_cpu(nics_);
    tree.nic = most_frequent_nic();
    for (const auto& [id, index] : gpus_) {
      if (!tree.gpu.empty() && tree.gpu != part_of(id)) {
        throw ConfigError(fmt::format("the server: expected GPUs of one part, found {} and {}",
                                      tree.gpu, part_of(id)));
      }
      tree.gpu = part_of(id);
      add_gpu_links(id, static_cast<std::size_t>(index), tree);
    }
    (void)put_in_order(tree);
    return tree;
  }

 private:
  std::vector<OutlineBranch> branches_of(NodeId host) {
    std::vector<OutlineBranch> branches;
    for (const LinkId link_id : topology_.links_from(host)) {
      const Link& link = topology_.link(link_id);
      const bool is_host_link = link.spec.kind == LinkKind::Pcie || link.spec.kind == LinkKind::C2c;
      if (!is_host_link || seen(link.target)) {
        continue;
      }
      const NodeKind kind = topology_.node(link.target).kind;
      if (kind == NodeKind::Cpu || (kind == NodeKind::Nic && !nics_.contains(link.target))) {
        continue;
      }
      seen_.push_back(link.target);
      OutlineBranch branch{
          .kind = kind, .link = topology_.parts()[link.spec.part], .lanes = link.spec.lanes};
      if (kind == NodeKind::Gpu) {
        branch.index = gpus_.at(link.target);
      } else if (kind == NodeKind::Nic) {
        branch.index = nics_.at(link.target);
        branch.part = part_of(link.target);
        branch.ports = topology_.node(link.target).ports;
      } else {
        branch.children = branches_of(link.target);
      }
      branches.push_back(std::move(branch));
    }
    return branches;
  }

  void add_gpu_links(NodeId gpu, std::size_t index, ServerOutline& tree) const {
    for (const LinkId link_id : topology_.links_from(gpu)) {
      const Link& link = topology_.link(link_id);
      if (link.spec.kind != LinkKind::NvLink && link.spec.kind != LinkKind::Xgmi) {
        continue;
      }
      if (const auto peer = gpus_.find(link.target); peer != gpus_.end()) {
        tree.gpu_links[index][static_cast<std::size_t>(peer->second)] += link.spec.lanes;
      } else {
        tree.switch_links[index] += link.spec.lanes;
      }
    }
  }

  void require_below_cpu(const std::map<NodeId, int>& devices) const {
    for (const auto& [id, index] : devices) {
      if (!seen(id)) {
        throw ConfigError(fmt::format(
            "the server: expected all GPUs and NICs below a CPU, found {} cut off by a fault",
            topology_.node(id).name));
      }
    }
  }

  // Returns the NIC of most; of equally many, the first by name.
  [[nodiscard]] std::string most_frequent_nic() const {
    std::map<std::string, int> counts;
    for (const auto& [id, index] : nics_) {
      ++counts[part_of(id)];
    }
    const auto max =
        std::max_element(counts.begin(), counts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return max == counts.end() ? "" : max->first;
  }

  // The way back up is a link too.
  [[nodiscard]] bool seen(NodeId node) const {
    return std::find(seen_.begin(), seen_.end(), node) != seen_.end();
  }

  [[nodiscard]] const std::string& part_of(NodeId id) const {
    return topology_.parts()[topology_.node(id).part];
  }

  const Topology& topology_;
  std::map<NodeId, int> gpus_;
  std::map<NodeId, int> nics_;
  std::vector<NodeId> cpus_;
  std::vector<NodeId> seen_;
};

// --- To NCCL's file ----------------------------------------------------------------------------

class XmlBuilder {
 public:
  XmlBuilder(const ServerOutline& tree, const Catalogue& catalogue)
      : tree_(tree), catalogue_(catalogue), gpu_(catalogue.gpus().at(tree.gpu)) {
    for (const std::vector<OutlineBranch>& socket : tree.sockets) {
      find_bus_ids(socket);
    }
  }

  NcclSystem build() {
    NcclSystem system;
    for (const std::vector<OutlineBranch>& socket : tree_.sockets) {
      NcclCpu cpu = cpu_of(static_cast<int>(system.cpus.size()));
      cpu.pcis = pcis_of(socket);
      system.cpus.push_back(std::move(cpu));
    }
    return system;
  }

 private:
  // Domain and bus: the order of the tree has at most as many devices as a file may have elements
  // before build() is refused, but counts on.
  static std::string bus_id(std::size_t number) {
    return fmt::format("{:04x}:{:02x}:00.0", number >> 8, number & 0xFF);
  }

  // Visits in the order in which pcis_of does.
  void find_bus_ids(const std::vector<OutlineBranch>& branches) {
    for (const OutlineBranch& branch : branches) {
      devices_ += branch.kind == NodeKind::RootComplex ? 0 : 1;
      if (branch.kind == NodeKind::Gpu) {
        gpu_bus_ids_.emplace(branch.index, bus_id(devices_));
      }
      find_bus_ids(branch.children);
    }
  }

  [[nodiscard]] NcclCpu cpu_of(int socket) const {
    NcclCpu cpu;
    cpu.numaid = socket;
    if (!tree_.cpu.empty()) {
      const CpuModel& model = catalogue_.cpus().at(tree_.cpu);
      cpu.arch = model.arch;
      if (model.identity) {
        cpu.vendor = model.identity->vendor;
        cpu.familyid = model.identity->family.value;
        cpu.modelid = model.identity->model.value;
      }
    }
    return cpu;
  }

  // Everything below a root complex stands below the CPU: NCCL has nothing in between.
  std::vector<NcclPci> pcis_of(const std::vector<OutlineBranch>& branches) {
    std::vector<NcclPci> pcis;
    for (const OutlineBranch& branch : branches) {
      if (branch.kind == NodeKind::RootComplex) {
        std::vector<NcclPci> below = pcis_of(branch.children);
        std::move(below.begin(), below.end(), std::back_inserter(pcis));
      } else {
        pcis.push_back(pci_of(branch));
      }
    }
    return pcis;
  }

  NcclPci pci_of(const OutlineBranch& branch) {
    NcclPci pci;
    pci.busid = bus_id(++written_);
    const auto link = catalogue_.links().find(branch.link);
    if (link != catalogue_.links().end() && link->second.family == LinkFamily::Pcie) {
      pci.link_speed = link_speed_text(link->second);
      pci.link_width = branch.lanes;
    }
    if (branch.kind == NodeKind::Gpu) {
      add_gpu(branch.index, pci);
    } else if (branch.kind == NodeKind::Nic) {
      add_nic(branch, pci);
    } else {
      pci.device_class = kBridge;
      pci.pcis = pcis_of(branch.children);
    }
    return pci;
  }

  static void add_pci_id(const std::optional<Sourced<std::vector<std::string>>>& ids,
                         NcclPci& pci) {
    if (ids && !ids->value.empty()) {
      pci.vendor = "0x" + ids->value[0].substr(0, 4);
      pci.device = "0x" + ids->value[0].substr(5);
    }
  }

  void add_gpu(int index, NcclPci& pci) const {
    const bool is_nvidia = gpu_.compute_capability.has_value();
    const std::string_view gpu_class = is_nvidia ? kNvidiaGpu : kAmdGpu;
    pci.device_class = gpu_class;
    add_pci_id(gpu_.pci_ids, pci);
    NcclGpu gpu;
    gpu.dev = index;
    if (is_nvidia) {
      gpu.sm = gpu_.compute_capability->value;
    } else {
      gpu.gcn = gcn_of(gpu_.architecture);
    }
    gpu.rank = index;
    gpu.gdr = 1;
    const auto position = static_cast<std::size_t>(index);
    auto& links = is_nvidia ? gpu.nvlinks : gpu.xgmis;
    if (tree_.switch_links[position] > 0) {
      links.push_back({.target = bus_id(devices_ + 1),
                       .count = tree_.switch_links[position],
                       .tclass = std::string(kNvSwitch)});
    }
    for (int peer = 0; peer < tree_.gpus; ++peer) {
      const int count = tree_.gpu_links[position][static_cast<std::size_t>(peer)];
      if (count > 0) {
        links.push_back(
            {.target = gpu_bus_ids_.at(peer), .count = count, .tclass = std::string(gpu_class)});
      }
    }
    if (!gpu_.c2c.empty()) {
      // A part of family c2c represents all links of a GPU together.
      const std::int64_t bits = catalogue_.link(gpu_.c2c).bandwidth.value.bits_per_second();
      gpu.c2cs.push_back({.bw = static_cast<int>(bits / 8 / 1'000'000), .count = 1});
    }
    pci.gpus.push_back(std::move(gpu));
  }

  void add_nic(const OutlineBranch& branch, NcclPci& pci) {
    const NicModel& model = catalogue_.nics().at(branch.part);
    const int index = branch.index;
    pci.device_class = kNicClass;
    add_pci_id(model.pci_ids, pci);
    NcclNic nic;
    for (int port = 1; port <= (branch.ports > 0 ? branch.ports : model.ports.value); ++port) {
      NcclNet net;
      net.name = model.ports.value == 1 ? fmt::format("nic{}", index)
                                        : fmt::format("nic{}port{}", index, port);
      net.dev = ports_++;
      net.speed = static_cast<int>(model.speed.value.bits_per_second() / 1'000'000);
      net.port = port;
      net.latency = 0.0;
      net.guid = fmt::format("0x{:x}", index + 1);
      net.gdr = 1;
      nic.nets.push_back(std::move(net));
    }
    pci.nics.push_back(std::move(nic));
  }

  const ServerOutline& tree_;
  const Catalogue& catalogue_;
  const GpuModel& gpu_;
  std::map<int, std::string> gpu_bus_ids_;
  std::size_t devices_ = 0;
  std::size_t written_ = 0;
  int ports_ = 0;
};

void find_sockets(const std::vector<OutlineBranch>& branches, std::size_t socket,
                  SmiMatrix& matrix) {
  for (const OutlineBranch& branch : branches) {
    find_sockets(branch.children, socket, matrix);
    if (branch.kind == NodeKind::Gpu) {
      matrix.devices[static_cast<std::size_t>(branch.index)].numa_affinity = std::to_string(socket);
    }
  }
}

}  // namespace

bool has_network(const Topology& topology) {
  return std::ranges::any_of(topology.links(), [&](const Link& link) {
    return link.spec.kind == LinkKind::Network && topology.node(link.source).kind == NodeKind::Nic;
  });
}

bool is_live_nic(const Topology& topology, NodeId nic, bool network) {
  const auto of_network = [&](LinkId id) {
    return topology.link(id).spec.kind == LinkKind::Network;
  };
  const auto links = topology.links_from(nic);
  return (!network || std::ranges::any_of(links, of_network)) &&
         !std::ranges::all_of(links, of_network);
}

ServerOutline server_outline(const Topology& topology, ServerId server) {
  return TreeBuilder(topology, server).build();
}

NcclSystem to_nccl_xml(const ServerOutline& tree, const Catalogue& catalogue) {
  NcclSystem system = XmlBuilder(tree, catalogue).build();
  if (const std::size_t elements = element_count(system); elements > kMaxXmlElements) {
    throw ConfigError(
        fmt::format("the server: expected at most {} elements in a topology file, as NCCL reads "
                    "them, found {}",
                    kMaxXmlElements, elements));
  }
  return system;
}

SmiMatrix to_smi_matrix(const ServerOutline& tree, const Catalogue& catalogue) {
  if (!catalogue.gpus().at(tree.gpu).compute_capability) {
    throw ConfigError(fmt::format(
        "the server: expected NVIDIA GPUs for the matrix of nvidia-smi, found {}", tree.gpu));
  }
  SmiMatrix matrix;
  for (int gpu = 0; gpu < tree.gpus; ++gpu) {
    matrix.devices.push_back({.name = fmt::format("GPU{}", gpu),
                              .is_gpu = true,
                              .cpu_affinity = "N/A",
                              .gpu_numa_id = "N/A"});
  }
  for (int nic = 0; nic < tree.nics; ++nic) {
    matrix.devices.push_back({.name = fmt::format("NIC{}", nic)});
  }
  for (std::size_t socket = 0; socket < tree.sockets.size(); ++socket) {
    find_sockets(tree.sockets[socket], socket, matrix);
  }
  matrix.cells = distances(tree);
  return matrix;
}

std::string link_speed_text(const LinkModel& link) {
  // Generation 1 and 2 lose a fifth to 8b/10b, 3 to 5 1.5 % to 128b/130b, 6 some 5 % to flits. Each
  // is twice the one before or a little less, so that the nearest is never in doubt.
  constexpr std::array<double, 6> kTransfers{2.5, 5.0, 8.0, 16.0, 32.0, 64.0};
  const double rate = static_cast<double>(link.bandwidth.value.bits_per_second()) / 1e9;
  const auto next = std::find_if(kTransfers.begin(), kTransfers.end(),
                                 [&](double transfers) { return rate <= transfers; });
  CHECK(next != kTransfers.end(), "a PCIe generation that is not known here");
  return fmt::format("{:.1f} GT/s PCIe", *next);
}

}  // namespace trainyard
