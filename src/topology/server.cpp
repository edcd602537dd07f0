// SPDX-License-Identifier: Apache-2.0
#include "topology/server.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <string>
#include <string_view>

namespace trainyard {
namespace {

using namespace literals;

constexpr std::array<std::string_view, 4> kTemplates = {"nvswitch", "full-mesh", "cube-mesh",
                                                        "pcie"};
constexpr int kMostDevices = 4096;
constexpr int kMostNics = 256;
constexpr int kMostSockets = 64;  // Every pair of them is joined.

// NVLinks between the GPUs of a DGX-1 with V100, as nvidia-smi prints them (gist
// ashwin/e139748bdba15f5af63f0146d01ee4c3; the same graph as dgx1() of microsoft/msccl-tools up to
// the numbering). Each GPU uses its six links.
constexpr std::array<std::array<int, 8>, 8> kCubeMesh = {{
    {0, 1, 1, 2, 2, 0, 0, 0},
    {1, 0, 2, 1, 0, 2, 0, 0},
    {1, 2, 0, 2, 0, 0, 1, 0},
    {2, 1, 2, 0, 0, 0, 0, 1},
    {2, 0, 0, 0, 0, 1, 1, 2},
    {0, 2, 0, 0, 1, 0, 2, 1},
    {0, 0, 1, 0, 1, 2, 0, 2},
    {0, 0, 0, 1, 2, 1, 2, 0},
}};
constexpr int kCubeMeshLinks = 6;

// The memory of a socket whose part is not given.
Sourced<Bandwidth> default_memory_bandwidth() {
  return {Bandwidth(1'638'400'000'000), Evidence::Estimate,
          "8 x DDR4-3200, as EPYC Rome and Milan and Xeon Ice Lake have; give server.cpu"};
}
Sourced<SimTime> default_memory_latency() {
  return {150_ns, Evidence::Estimate, "as the sockets of the catalogue; give server.cpu"};
}

// `least` where the key is absent.
int optional_count(const ConfigNode& node, std::string_view key, int least, int most) {
  const auto value = node.optional(key);
  return value ? static_cast<int>(value->as_integer(least, most)) : least;
}

// The links between the GPUs, as far as the GPU has what the template needs.
void read_scale_up(const ConfigNode& node, const Catalogue& catalogue, PartLog& parts,
                   ServerSpec& spec) {
  const ConfigNode gpu_node = node.required("gpu");
  const ConfigNode gpus_node = node.required("gpus");
  const GpuModel& gpu = catalogue.gpu(gpu_node);
  spec.gpu_part = parts.part(gpu.name);
  if (spec.layout == ServerTemplate::Pcie) {
    return;
  }
  const std::string_view layout = kTemplates[static_cast<std::size_t>(spec.layout)];
  if (gpu.scale_up_link.empty()) {
    gpu_node.fail(fmt::format(
        "{} has no link to other GPUs, which the template {} needs; use the template pcie",
        gpu.name, layout));
  }
  const LinkModel& link = catalogue.link(gpu.scale_up_link);
  spec.scale_up = gpu_link(link, parts);
  spec.scale_up_links = parts.use(gpu.name, "scale_up_links", gpu.scale_up_links);
  if (link.family != LinkFamily::NvLink && spec.layout != ServerTemplate::FullMesh) {
    gpu_node.fail(
        fmt::format("{} has no NVLink, which the template {} needs; use the template full-mesh",
                    gpu.name, layout));
  }
  if (spec.layout == ServerTemplate::NvSwitch && link.switch_latency) {
    spec.scale_up_switch_latency = parts.use(link.name, "switch_latency", *link.switch_latency);
  }
  if (spec.layout == ServerTemplate::CubeMesh) {
    if (spec.gpus != static_cast<int>(kCubeMesh.size())) {
      gpus_node.fail("8 GPUs for the template cube-mesh", gpus_node.found());
    }
    if (spec.scale_up_links != kCubeMeshLinks) {
      gpu_node.fail(fmt::format("the template cube-mesh takes {} links of each GPU, and {} has {}",
                                kCubeMeshLinks, gpu.name, spec.scale_up_links));
    }
  }
  if (spec.layout == ServerTemplate::FullMesh && spec.gpus - 1 > spec.scale_up_links) {
    gpus_node.fail(fmt::format("at most {} GPUs for the template full-mesh, as {} has {} links",
                               spec.scale_up_links + 1, gpu.name, spec.scale_up_links),
                   gpus_node.found());
  }
}

// How PCIe behaves in this server, whatever the part.
class PcieReader {
 public:
  PcieReader(const ConfigNode& node, const Catalogue& catalogue, PartLog& parts, ServerSpec& spec)
      : catalogue_(catalogue), parts_(parts), spec_(spec) {
    if (const auto payload = node.optional("pcie_payload")) {
      const Bytes size = payload->as_bytes();
      if (size < Bytes(64) || size > Bytes(4096)) {
        payload->fail("64 B to 4096 B", payload->found());
      }
      efficiency_ = pcie_efficiency(size);
    }
  }

  void read_gpu(const GpuModel& gpu) {
    if (gpu.pcie.empty()) {
      spec_.gpu_host = gpu_link(catalogue_.link(gpu.c2c), parts_).bundle(1);
      return;
    }
    const LinkModel& model = catalogue_.link(gpu.pcie);
    const int lanes = parts_.use(gpu.name, "pcie_lanes", gpu.pcie_lanes);
    spec_.gpu_host = with_payload(gpu_link(model, parts_)).bundle(lanes);
    read_uplink(model, lanes);
  }

  void read_nic(const NicModel& nic) {
    const LinkModel& model = catalogue_.link(nic.pcie);
    const int lanes = parts_.use(nic.name, "pcie_lanes", nic.pcie_lanes);
    spec_.nic_host = with_payload(physical_link(model, parts_)).bundle(lanes);
    if (spec_.pcie_uplink.bandwidth == Bandwidth()) {
      read_uplink(model, lanes);
    }
  }

  // The link between PCIe switch and CPU, and what it costs to pass either.
  void read_uplink(const LinkModel& model, int lanes) {
    spec_.pcie_uplink = with_payload(physical_link(model, parts_)).bundle(lanes);
    if (model.switch_latency && spec_.pcie_switches > 0) {
      spec_.pcie_switch_latency = parts_.use(model.name, "switch_latency", *model.switch_latency);
    }
    if (model.root_latency) {
      spec_.root_latency = parts_.use(model.name, "root_latency", *model.root_latency);
    }
  }

 private:
  [[nodiscard]] PhysicalLink with_payload(PhysicalLink link) const {
    link.efficiency = efficiency_.value_or(link.efficiency);
    return link;
  }

  const Catalogue& catalogue_;
  PartLog& parts_;
  ServerSpec& spec_;
  std::optional<double> efficiency_;
};

void read_uplink_override(const ConfigNode& node, const Catalogue& catalogue, PcieReader& pcie) {
  const auto uplink = node.optional("pcie_uplink");
  const auto lanes = node.optional("pcie_uplink_lanes");
  if (lanes && !uplink) {
    lanes->fail("pcie_uplink_lanes needs pcie_uplink, the name of the link");
  }
  if (!uplink) {
    return;
  }
  const LinkModel& model = catalogue.link(*uplink);
  if (model.family != LinkFamily::Pcie) {
    uplink->fail("a PCIe link such as PCIe4", uplink->found());
  }
  pcie.read_uplink(model, lanes ? static_cast<int>(lanes->as_integer(1, 32)) : 16);
}

void read_nics(const ConfigNode& node, const Catalogue& catalogue, PartLog& parts, PcieReader& pcie,
               ServerSpec& spec) {
  const auto count = node.optional("nics");
  spec.nics = count ? static_cast<int>(count->as_integer(0, kMostNics)) : 0;
  if (spec.nics == 0) {
    if (const auto unused = node.optional("nic")) {
      (void)catalogue.nic(*unused);
    }
    return;
  }
  const NicModel& nic = catalogue.nic(node.required("nic"));
  spec.nic_part = parts.part(nic.name);
  const int ports = parts.use(nic.name, "ports", nic.ports);
  spec.nic_speed = Bandwidth(parts.use(nic.name, "speed", nic.speed).bits_per_second() * ports);
  spec.network_efficiency = parts.use(nic.name, "efficiency", nic.efficiency);
  spec.nic_latency = parts.use(nic.name, "latency", nic.latency);
  pcie.read_nic(nic);
}

// The CPU's part if the file names it, and the memory behind it.
const CpuModel* read_cpu(const ConfigNode& node, const Catalogue& catalogue, PartLog& parts,
                         ServerSpec& spec) {
  spec.memory_link.kind = LinkKind::Memory;
  const auto name = node.optional("cpu");
  if (!name) {
    spec.memory_link.bandwidth = parts.use("host memory", "bandwidth", default_memory_bandwidth());
    spec.memory_link.latency = parts.use("host memory", "latency", default_memory_latency());
    return nullptr;
  }
  const CpuModel& cpu = catalogue.cpu(*name);
  spec.cpu_part = parts.part(cpu.name);
  spec.memory_link.bandwidth = parts.use(cpu.name, "memory_bandwidth", cpu.memory_bandwidth);
  spec.memory_link.latency = parts.use(cpu.name, "memory_latency", cpu.memory_latency);
  spec.memory_link.part = spec.cpu_part;
  return &cpu;
}

// The link between sockets: the key, else what the CPU has.
const LinkModel& socket_link(const ConfigNode& node, const Catalogue& catalogue,
                             const CpuModel* cpu) {
  const auto name = node.optional("socket_link");
  if (!name && cpu != nullptr && !cpu->socket_link.empty()) {
    return catalogue.link(cpu->socket_link);
  }
  const ConfigNode link = node.required("socket_link");
  const LinkModel& model = catalogue.link(link);
  if (model.family != LinkFamily::Socket) {
    link.fail("a link between CPU sockets", link.found());
  }
  return model;
}

void read_sockets(const ConfigNode& node, const Catalogue& catalogue, PartLog& parts,
                  ServerSpec& spec) {
  spec.sockets = optional_count(node, "sockets", 1, kMostSockets);
  const CpuModel* cpu = read_cpu(node, catalogue, parts, spec);
  const auto count = node.optional("socket_links");
  const int links = count ? static_cast<int>(count->as_integer(1, 16)) : 1;
  if (spec.sockets == 1) {
    if (const auto unused = node.optional("socket_link")) {
      (void)catalogue.link(*unused);
    }
    return;
  }
  spec.socket_link = physical_link(socket_link(node, catalogue, cpu), parts).bundle(links);
}

// The nodes of one server while it grows.
class ServerBuilder {
 public:
  ServerBuilder(TopologyBuilder& builder, const ServerSpec& spec)
      : builder_(builder), spec_(spec), server_(builder.add_server()) {}

  ServerNodes build() {
    const auto gpus = add_nodes({.kind = NodeKind::Gpu, .part = spec_.gpu_part}, spec_.gpus);
    const auto nics = add_nodes(
        {.kind = NodeKind::Nic, .latency = spec_.nic_latency, .part = spec_.nic_part}, spec_.nics);
    const auto switches = add_nodes(
        {.kind = NodeKind::PcieSwitch, .latency = spec_.pcie_switch_latency}, spec_.pcie_switches);
    const auto cpus =
        add_nodes({.kind = NodeKind::Cpu, .latency = spec_.root_latency, .part = spec_.cpu_part},
                  spec_.sockets);
    join_gpus(gpus);
    const bool on_cpu = switches.empty() || spec_.gpu_host.kind == LinkKind::C2c;
    deal(gpus, on_cpu ? cpus : switches, spec_.gpu_host);
    deal(nics, switches.empty() ? cpus : switches, spec_.nic_host);
    deal(switches, cpus, spec_.pcie_uplink);
    for (std::size_t a = 0; a < cpus.size(); ++a) {
      for (std::size_t b = a + 1; b < cpus.size(); ++b) {
        builder_.add_duplex_link(cpus[a], cpus[b], spec_.socket_link);
      }
    }
    return {.gpus = gpus, .nics = nics, .cpus = cpus, .memories = {}};
  }

 private:
  NodeId add_node(Node node, std::string_view name) {
    node.name = fmt::format("server{}/{}", server_.value(), name);
    node.server = server_;
    return builder_.add_node(std::move(node));
  }

  // Named gpu0, gpu1, ...
  std::vector<NodeId> add_nodes(const Node& node, int count) {
    const std::string_view name = node.kind == NodeKind::PcieSwitch ? "pcie" : to_string(node.kind);
    std::vector<NodeId> nodes;
    for (int index = 0; index < count; ++index) {
      nodes.push_back(add_node(node, fmt::format("{}{}", name, index)));
    }
    return nodes;
  }

  void deal(const std::vector<NodeId>& devices, const std::vector<NodeId>& hosts,
            const LinkSpec& link) {
    for (std::size_t index = 0; index < devices.size(); ++index) {
      builder_.add_duplex_link(devices[index], hosts[index * hosts.size() / devices.size()], link);
    }
  }

  void join_gpus(const std::vector<NodeId>& gpus) {
    if (spec_.layout == ServerTemplate::NvSwitch) {
      const NodeId nvswitch = add_node(
          {.kind = NodeKind::NvSwitch, .latency = spec_.scale_up_switch_latency}, "nvswitch");
      for (const NodeId gpu : gpus) {
        builder_.add_duplex_link(gpu, nvswitch, spec_.scale_up.bundle(spec_.scale_up_links));
      }
    }
    if (spec_.layout != ServerTemplate::FullMesh && spec_.layout != ServerTemplate::CubeMesh) {
      return;
    }
    for (std::size_t a = 0; a < gpus.size(); ++a) {
      for (std::size_t b = a + 1; b < gpus.size(); ++b) {
        const int links = spec_.layout == ServerTemplate::CubeMesh
                              ? kCubeMesh[a][b]
                              : spec_.scale_up_links / (spec_.gpus - 1);
        if (links > 0) {
          builder_.add_duplex_link(gpus[a], gpus[b], spec_.scale_up.bundle(links));
        }
      }
    }
  }

  TopologyBuilder& builder_;
  const ServerSpec& spec_;
  ServerId server_;
};

}  // namespace

ServerSpec read_server(const ConfigNode& node, const Catalogue& catalogue, PartLog& parts) {
  ServerSpec spec;
  spec.layout = static_cast<ServerTemplate>(node.required("template").as_choice(kTemplates));
  const ConfigNode gpu = node.required("gpu");  // Before "gpus", of which it is no misspelling.
  spec.gpus = static_cast<int>(node.required("gpus").as_integer(1, kMostDevices));
  spec.pcie_switches = optional_count(node, "pcie_switches", 0, kMostDevices);
  read_scale_up(node, catalogue, parts, spec);
  PcieReader pcie(node, catalogue, parts, spec);
  pcie.read_gpu(catalogue.gpu(gpu));
  read_nics(node, catalogue, parts, pcie, spec);
  read_uplink_override(node, catalogue, pcie);
  read_sockets(node, catalogue, parts, spec);
  return spec;
}

ServerNodes add_server(TopologyBuilder& builder, const ServerSpec& spec) {
  return ServerBuilder(builder, spec).build();
}

void add_memory(TopologyBuilder& builder, const ServerSpec& spec, ServerNodes& server) {
  for (std::size_t socket = 0; socket < server.cpus.size(); ++socket) {
    const ServerId id = *builder.node(server.cpus[socket]).server;
    const NodeId memory =
        builder.add_node({.kind = NodeKind::Memory,
                          .name = fmt::format("server{}/memory{}", id.value(), socket),
                          .server = id});
    builder.add_duplex_link(server.cpus[socket], memory, spec.memory_link);
    server.memories.push_back(memory);
  }
}

}  // namespace trainyard
