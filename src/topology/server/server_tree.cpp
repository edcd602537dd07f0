// SPDX-License-Identifier: Apache-2.0
// A root complex costs its latency once on a way through it, whether it ends in the memory, goes
// back to PCIe or on to another socket: half is charged on each PCIe link at its CPU end, half in
// the latency of the memory. So GPUs of two sockets pay one root complex and the link between the
// sockets, as measured (docs/models/hardware.md).
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "topology/server/server_keys.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr int kSlotLanes = 16;

// Devices below two root complexes of one socket are 10 ns farther apart than below one.
Sourced<SimTime> root_link_latency() {
  return {5_ns, Evidence::Measured,
          "voipmonitor/rtx6kpro @29f3863, hardware/*.md: 1062 ns with one root complex, 1072 with "
          "two"};
}

// A link and how many lanes of it.
struct Uplink {
  const LinkModel* model = nullptr;
  int lanes = 0;
};

// The place where a branch of the tree hangs.
struct Place {
  NodeKind kind = NodeKind::Cpu;
  int index = 0;
};

class TreeReader {
 public:
  TreeReader(const ServerKeys& keys, PartLog& parts, ServerSpec& spec)
      : keys_(keys), catalogue_(*keys.catalogue), parts_(parts), spec_(spec) {}

  void read_numbers() {
    spec_.sockets = keys_.sockets;
    const int gpus = *keys_.gpus;
    const int nics = keys_.nics.value_or(0);
    const int switches = switches_beside(nics);
    const auto on_cpu = [&](int device, int devices) {
      return Place{NodeKind::Cpu, share(device, devices, spec_.sockets)};
    };
    const auto host = [&](int device, int devices) {
      return switches > 0 ? Place{NodeKind::PcieSwitch, share(device, devices, switches)}
                          : on_cpu(device, devices);
    };
    for (int gpu = 0; gpu < gpus; ++gpu) {
      add_gpu(*keys_.node, *keys_.gpu,
              keys_.gpu->c2c.empty() ? host(gpu, gpus) : on_cpu(gpu, gpus));
    }
    for (int index = 0; index < switches; ++index) {
      add_switch(*keys_.node, default_uplink(), on_cpu(index, switches));
    }
    for (int nic = 0; nic < nics; ++nic) {
      add_nic(*keys_.node, plain_nic(), host(nic, nics));
    }
    finish();
  }

  void read_tree() {
    spec_.sockets = static_cast<int>(keys_.tree->size());
    for (int socket = 0; socket < spec_.sockets; ++socket) {
      add_branches((*keys_.tree)[static_cast<std::size_t>(socket)], {NodeKind::Cpu, socket});
    }
    if (spec_.gpu_specs.empty()) {
      keys_.node->required("tree").fail("at least one GPU", "none");
    }
    check_number("gpus", keys_.gpus, spec_.gpu_specs.size());
    check_number("nics", keys_.nics, spec_.nic_specs.size());
    finish();
  }

 private:
  // Where there are fewer NICs than PCIe switches, but one for two GPUs, pairs of GPUs share a
  // switch, as servers are built: otherwise one of the two would reach the NIC through a CPU.
  [[nodiscard]] int switches_beside(int nics) const {
    const int given = keys_.pcie_switches;
    const int pairs = (*keys_.gpus + 1) / 2;
    if (nics < pairs || nics >= std::min(given, *keys_.gpus)) {
      return given;
    }
    spec_.warnings.push_back(fmt::format(
        "server: {} of {} PCIe switches, as there are {} NICs, each beside the GPUs that share it; "
        "tree describes other servers",
        nics, given, nics));
    return nics;
  }

  static int share(int index, int count, int hosts) {
    return static_cast<int>(std::int64_t{index} * hosts / count);
  }

  [[nodiscard]] const NicModel& plain_nic() const {
    if (keys_.nic == nullptr) {
      (void)keys_.node->required("nic");
    }
    return *keys_.nic;
  }

  // Returns the link from a PCIe switch to what is above: as the keys say, else what the GPU has,
  // else the NIC.
  [[nodiscard]] Uplink default_uplink() {
    if (keys_.pcie_uplink != nullptr) {
      return {keys_.pcie_uplink, keys_.pcie_uplink_lanes.value_or(kSlotLanes)};
    }
    const GpuModel& gpu = *keys_.gpu;
    if (!gpu.pcie.empty()) {
      return {&catalogue_.link(gpu.pcie), parts_.use(gpu.name, "pcie_lanes", gpu.pcie_lanes)};
    }
    if (keys_.nic == nullptr) {
      (void)keys_.node->required("pcie_uplink");
    }
    const NicModel& nic = *keys_.nic;
    return {&catalogue_.link(nic.pcie), parts_.use(nic.name, "pcie_lanes", nic.pcie_lanes)};
  }

  // Recursion is as deep as the file.
  void add_branches(const std::vector<ServerBranch>& branches, Place above) {
    for (const ServerBranch& branch : branches) {
      for (int index = 0; index < branch.times; ++index) {
        add_branch(branch, above);
      }
    }
  }

  void add_branch(const ServerBranch& branch, Place above) {
    const ConfigNode& where = *branch.node;
    if (branch.kind == NodeKind::Gpu) {
      add_gpu(where, branch.gpu != nullptr ? *branch.gpu : *keys_.gpu, above);
    } else if (branch.kind == NodeKind::Nic) {
      add_nic(where, branch.nic != nullptr ? *branch.nic : plain_nic(), above);
    } else if (branch.kind == NodeKind::PcieSwitch) {
      Uplink uplink =
          branch.uplink != nullptr ? Uplink{branch.uplink, kSlotLanes} : default_uplink();
      uplink.lanes = branch.lanes.value_or(uplink.lanes);
      add_branches(branch.below, {NodeKind::PcieSwitch, add_switch(where, uplink, above)});
    } else {
      add_branches(branch.below, add_root(branch, above));
    }
  }

  void add_gpu(const ConfigNode& where, const GpuModel& gpu, Place above) {
    check_room(where, spec_.gpu_specs.size(), kMaxServerDevices, "GPUs");
    const std::uint16_t part = parts_.part(gpu.name);
    if (!gpu.pcie.empty()) {
      const LinkModel& model = catalogue_.link(gpu.pcie);
      const int lanes = parts_.use(gpu.name, "pcie_lanes", gpu.pcie_lanes);
      spec_.gpu_specs.push_back({part, attach(gpu_link(model, parts_), lanes, model, above)});
      return;
    }
    if (above.kind != NodeKind::Cpu) {
      where.fail(
          fmt::format("{} reaches its CPU over C2C: it stands beside the PCIe switches and "
                      "root complexes of a socket, not below",
                      gpu.name));
    }
    const LinkModel& model = catalogue_.link(gpu.c2c);
    spec_.gpu_specs.push_back({part, {above.kind, above.index, gpu_link(model, parts_).bundle(1)}});
  }

  void add_nic(const ConfigNode& where, const NicModel& nic, Place above) {
    check_room(where, spec_.nic_specs.size(), kMaxServerNics, "NICs");
    NicSpec spec;
    spec.part = parts_.part(nic.name);
    spec.ports = parts_.use(nic.name, "ports", nic.ports);
    spec.port_speed = parts_.use(nic.name, "speed", nic.speed);
    spec.efficiency = parts_.use(nic.name, "efficiency", nic.efficiency);
    spec.latency = parts_.use(nic.name, "latency", nic.latency);
    spec.grouped = nic.grouped && parts_.use(nic.name, "grouped", *nic.grouped);
    const LinkModel& model = catalogue_.link(nic.pcie);
    const int lanes = parts_.use(nic.name, "pcie_lanes", nic.pcie_lanes);
    spec.host = attach(physical_link(model, parts_), lanes, model, above);
    spec_.nic_specs.push_back(spec);
  }

  int add_switch(const ConfigNode& where, const Uplink& uplink, Place above) {
    check_room(where, spec_.switch_specs.size(), kMaxServerDevices, "PCIe switches");
    const LinkModel& model = *uplink.model;
    PcieSwitchSpec spec;
    const PhysicalLink link = physical_link(model, parts_);
    if (model.switch_latency) {
      spec.latency = parts_.use(model.name, "switch_latency", *model.switch_latency);
    }
    spec.host = attach(link, uplink.lanes, model, above);
    spec_.switch_specs.push_back(spec);
    return static_cast<int>(spec_.switch_specs.size()) - 1;
  }

  Place add_root(const ServerBranch& branch, Place above) {
    check_room(*branch.node, spec_.root_specs.size(), kMaxServerDevices, "root complexes");
    if (above.kind != NodeKind::Cpu) {
      branch.node->fail(
          "a root complex belongs to a socket: it cannot stand below a PCIe switch or "
          "another one");
    }
    LinkSpec link{.kind = LinkKind::Pcie};
    if (branch.bandwidth) {
      link.bandwidth = *branch.bandwidth;
    } else if (keys_.cpu != nullptr && keys_.cpu->root_bandwidth) {
      link.bandwidth = parts_.use(keys_.cpu->name, "root_bandwidth", *keys_.cpu->root_bandwidth);
    } else {
      (void)branch.node->required("bandwidth");
    }
    link.latency = parts_.use("root complex", "latency to its CPU", root_link_latency());
    spec_.root_specs.push_back({above.kind, above.index, link});
    return {NodeKind::RootComplex, static_cast<int>(spec_.root_specs.size()) - 1};
  }

  // The link from a device to what is above it.
  [[nodiscard]] Attachment attach(PhysicalLink link, int lanes, const LinkModel& model,
                                  Place above) {
    link.efficiency = keys_.pcie_efficiency.value_or(link.efficiency);
    if (above.kind != NodeKind::PcieSwitch && model.root_latency) {
      const SimTime root = parts_.use(model.name, "root_latency", *model.root_latency);
      link.latency += picoseconds(root.picoseconds() / 2);
    }
    return {above.kind, above.index, link.bundle(lanes)};
  }

  static void check_room(const ConfigNode& where, std::size_t number, int max,
                         std::string_view what) {
    if (number >= static_cast<std::size_t>(max)) {
      where.fail(fmt::format("expected at most {} {} in a server, found more", max, what));
    }
  }

  // `gpus` and `nics` beside `tree` say what is there to be counted.
  void check_number(std::string_view key, std::optional<int> given, std::size_t number) const {
    if (given && *given != static_cast<int>(number)) {
      const ConfigNode node = keys_.node->required(key);
      node.fail(fmt::format("{}, the number in tree", number), node.found());
    }
  }

  void finish() {
    spec_.gpus = static_cast<int>(spec_.gpu_specs.size());
    spec_.nics = static_cast<int>(spec_.nic_specs.size());
    for (const NicSpec& nic : spec_.nic_specs) {
      const bool is_first = &nic == &spec_.nic_specs.front();
      spec_.nic_speed = is_first ? nic.speed() : std::min(spec_.nic_speed, nic.speed());
      spec_.nic_ports = is_first ? nic.ports : std::min(spec_.nic_ports, nic.ports);
      spec_.network_efficiency =
          is_first ? nic.efficiency : std::min(spec_.network_efficiency, nic.efficiency);
    }
  }

  const ServerKeys& keys_;
  const Catalogue& catalogue_;
  PartLog& parts_;
  ServerSpec& spec_;
};

}  // namespace

void read_server_tree(const ServerKeys& keys, PartLog& parts, ServerSpec& spec) {
  TreeReader reader(keys, parts, spec);
  if (keys.tree) {
    reader.read_tree();
  } else {
    reader.read_numbers();
  }
}

}  // namespace trainyard
