// SPDX-License-Identifier: Apache-2.0
// A root complex costs its latency once on a way through it, whether it ends in the memory, goes
// back to PCIe or on to another socket: half is charged on each PCIe link at its CPU end, half in
// the latency of the memory. So GPUs of two sockets pay one root complex and the link between the
// sockets, as measured (docs/models/hardware.md).
#include "topology/server/server_tree.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace trainyard {
namespace {

using namespace literals;

constexpr int kMostDevices = 4096;
constexpr int kMostNics = 256;
constexpr int kMostSockets = 64;  // Every pair of them is joined.
constexpr int kMostLanes = 32;
constexpr int kSlotLanes = 16;

constexpr std::array<std::string_view, 2> kDevices = {"gpu", "nic"};

// Devices below two root complexes of one socket are 10 ns farther apart than below one.
Sourced<SimTime> root_link_latency() {
  return {5_ns, Evidence::Measured,
          "voipmonitor/rtx6kpro @29f3863, hardware/*.md: 1062 ns with one root complex, 1072 with "
          "two"};
}

int optional_count(const ConfigNode& node, std::string_view key, int least, int most) {
  const auto value = node.optional(key);
  return value ? static_cast<int>(value->as_integer(least, most)) : least;
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
  TreeReader(const ConfigNode& node, const Catalogue& catalogue, const CpuModel* cpu,
             PartLog& parts, ServerSpec& spec)
      : node_(node),
        catalogue_(catalogue),
        cpu_(cpu),
        parts_(parts),
        spec_(spec),
        gpu_node_(node.required("gpu")),
        gpu_(catalogue.gpu(gpu_node_)) {
    if (const auto payload = node.optional("pcie_payload")) {
      const Bytes size = payload->as_bytes();
      if (size < Bytes(64) || size > Bytes(4096)) {
        payload->fail("64 B to 4096 B", payload->found());
      }
      efficiency_ = pcie_efficiency(size);
    }
    if (const auto nic = node.optional("nic")) {
      nic_ = &catalogue.nic(*nic);
    }
    read_uplink_keys();
  }

  void read_numbers() {
    spec_.sockets = optional_count(node_, "sockets", 1, kMostSockets);
    const int gpus = static_cast<int>(node_.required("gpus").as_integer(1, kMostDevices));
    const int switches = optional_count(node_, "pcie_switches", 0, kMostDevices);
    const int nics = optional_count(node_, "nics", 0, kMostNics);
    const auto host = [&](int device, int devices) {
      return switches > 0 ? Place{NodeKind::PcieSwitch, share(device, devices, switches)}
                          : Place{NodeKind::Cpu, share(device, devices, spec_.sockets)};
    };
    for (int gpu = 0; gpu < gpus; ++gpu) {
      const bool on_cpu = !gpu_.c2c.empty();
      add_gpu(gpu_node_, gpu_,
              on_cpu ? Place{NodeKind::Cpu, share(gpu, gpus, spec_.sockets)} : host(gpu, gpus));
    }
    for (int index = 0; index < switches; ++index) {
      add_switch(node_, default_uplink(), {NodeKind::Cpu, share(index, switches, spec_.sockets)});
    }
    for (int nic = 0; nic < nics; ++nic) {
      add_nic(node_, catalogue_.nic(node_.required("nic")), host(nic, nics));
    }
    finish();
  }

  void read_tree(const ConfigNode& tree) {
    for (const std::string_view key : {"sockets", "pcie_switches"}) {
      if (const auto number = node_.optional(key)) {
        number->fail("tree says this already; leave it out");
      }
    }
    const std::vector<ConfigNode> sockets = tree.items();
    if (sockets.empty() || sockets.size() > kMostSockets) {
      tree.fail(fmt::format("a list of branches for each of 1 to {} sockets", kMostSockets),
                fmt::format("{} sockets", sockets.size()));
    }
    spec_.sockets = static_cast<int>(sockets.size());
    for (int socket = 0; socket < spec_.sockets; ++socket) {
      for (const ConfigNode& branch : sockets[static_cast<std::size_t>(socket)].items()) {
        read_branch(branch, {NodeKind::Cpu, socket});
      }
    }
    if (spec_.gpu_specs.empty()) {
      tree.fail("at least one GPU", "none");
    }
    check_number("gpus", spec_.gpu_specs.size());
    check_number("nics", spec_.nic_specs.size());
    finish();
  }

 private:
  static int share(int index, int count, int hosts) {
    return static_cast<int>(std::int64_t{index} * hosts / count);
  }

  // The keys `pcie_uplink` and `pcie_uplink_lanes`.
  void read_uplink_keys() {
    const auto uplink = node_.optional("pcie_uplink");
    const auto lanes = node_.optional("pcie_uplink_lanes");
    if (lanes && !uplink) {
      lanes->fail("pcie_uplink_lanes needs pcie_uplink, the name of the link");
    }
    if (uplink) {
      uplink_ = Uplink{&pcie_model(*uplink), lanes ? lane_count(*lanes) : kSlotLanes};
    }
  }

  [[nodiscard]] const LinkModel& pcie_model(const ConfigNode& name) const {
    const LinkModel& model = catalogue_.link(name);
    if (model.family != LinkFamily::Pcie) {
      name.fail("a PCIe link such as PCIe4", name.found());
    }
    return model;
  }

  static int lane_count(const ConfigNode& lanes) {
    return static_cast<int>(lanes.as_integer(1, kMostLanes));
  }

  // Returns the link from a PCIe switch to what is above: as the keys say, else what the GPU has,
  // else the NIC.
  [[nodiscard]] Uplink default_uplink() {
    if (uplink_) {
      return *uplink_;
    }
    if (!gpu_.pcie.empty()) {
      return {&catalogue_.link(gpu_.pcie), parts_.use(gpu_.name, "pcie_lanes", gpu_.pcie_lanes)};
    }
    if (nic_ != nullptr) {
      return {&catalogue_.link(nic_->pcie), parts_.use(nic_->name, "pcie_lanes", nic_->pcie_lanes)};
    }
    return {&pcie_model(node_.required("pcie_uplink")), kSlotLanes};
  }

  void read_branch(const ConfigNode& branch, Place above) {
    if (branch.is_scalar()) {
      if (branch.as_choice(kDevices) == 0) {
        add_gpu(branch, gpu_, above);
      } else {
        add_nic(branch, catalogue_.nic(node_.required("nic")), above);
      }
      return;
    }
    const int times = optional_count(branch, "times", 1, kMostDevices);
    if (const auto below = branch.optional("switch")) {
      repeat(times, [&] {
        const Place place{NodeKind::PcieSwitch, add_switch(branch, uplink_of(branch), above)};
        read_branches(*below, place);
      });
    } else if (const auto root = branch.optional("root")) {
      repeat(times, [&] { read_branches(*root, add_root(branch, above)); });
    } else if (const auto gpu = branch.optional("gpu")) {
      repeat(times, [&] { add_gpu(*gpu, catalogue_.gpu(*gpu), above); });
    } else if (const auto nic = branch.optional("nic")) {
      repeat(times, [&] { add_nic(*nic, catalogue_.nic(*nic), above); });
    } else {
      branch.fail("gpu, nic or a mapping with one of the keys switch, root, gpu and nic");
    }
  }

  template <typename Action>
  static void repeat(int times, const Action& action) {
    for (int index = 0; index < times; ++index) {
      action();
    }
  }

  void read_branches(const ConfigNode& list, Place above) {
    const std::vector<ConfigNode> branches = list.items();
    if (branches.empty()) {
      list.fail("at least one branch", "an empty list");
    }
    for (const ConfigNode& branch : branches) {
      read_branch(branch, above);
    }
  }

  [[nodiscard]] Uplink uplink_of(const ConfigNode& branch) {
    const auto part = branch.optional("uplink");
    const auto lanes = branch.optional("lanes");
    Uplink uplink = part ? Uplink{&pcie_model(*part), kSlotLanes} : default_uplink();
    if (lanes) {
      uplink.lanes = lane_count(*lanes);
    }
    return uplink;
  }

  void add_gpu(const ConfigNode& where, const GpuModel& gpu, Place above) {
    check_room(where, spec_.gpu_specs.size(), kMostDevices, "GPUs");
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
    check_room(where, spec_.nic_specs.size(), kMostNics, "NICs");
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
    check_room(where, spec_.switch_specs.size(), kMostDevices, "PCIe switches");
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

  Place add_root(const ConfigNode& branch, Place above) {
    check_room(branch, spec_.root_specs.size(), kMostDevices, "root complexes");
    if (above.kind != NodeKind::Cpu) {
      branch.fail(
          "a root complex belongs to a socket: it cannot stand below a PCIe switch or "
          "another one");
    }
    LinkSpec link{.kind = LinkKind::Pcie};
    if (const auto limit = branch.optional("bandwidth")) {
      link.bandwidth = limit->as_bandwidth();
    } else if (cpu_ != nullptr && cpu_->root_bandwidth) {
      link.bandwidth = parts_.use(cpu_->name, "root_bandwidth", *cpu_->root_bandwidth);
    } else {
      (void)branch.required("bandwidth");
    }
    link.latency = parts_.use("root complex", "latency to its CPU", root_link_latency());
    spec_.root_specs.push_back({above.kind, above.index, link});
    return {NodeKind::RootComplex, static_cast<int>(spec_.root_specs.size()) - 1};
  }

  // The link from a device to what is above it.
  [[nodiscard]] Attachment attach(PhysicalLink link, int lanes, const LinkModel& model,
                                  Place above) {
    link.efficiency = efficiency_.value_or(link.efficiency);
    if (above.kind != NodeKind::PcieSwitch && model.root_latency) {
      const SimTime root = parts_.use(model.name, "root_latency", *model.root_latency);
      link.latency += picoseconds(root.picoseconds() / 2);
    }
    return {above.kind, above.index, link.bundle(lanes)};
  }

  static void check_room(const ConfigNode& where, std::size_t number, int most,
                         std::string_view what) {
    if (number >= static_cast<std::size_t>(most)) {
      where.fail(fmt::format("expected at most {} {} in a server, found more", most, what));
    }
  }

  // `gpus` and `nics` beside `tree` say what is there to be counted.
  void check_number(std::string_view key, std::size_t number) const {
    const auto given = node_.optional(key);
    if (given && given->as_integer(0, kMostDevices) != static_cast<std::int64_t>(number)) {
      given->fail(fmt::format("{}, the number in tree", number), given->found());
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

  const ConfigNode& node_;
  const Catalogue& catalogue_;
  const CpuModel* cpu_;
  PartLog& parts_;
  ServerSpec& spec_;
  ConfigNode gpu_node_;
  const GpuModel& gpu_;
  const NicModel* nic_ = nullptr;
  std::optional<Uplink> uplink_;
  std::optional<double> efficiency_;  // Efficiency of PCIe, where `pcie_payload` gives it.
};

}  // namespace

void read_server_tree(const ConfigNode& node, const Catalogue& catalogue, const CpuModel* cpu,
                      PartLog& parts, ServerSpec& spec) {
  TreeReader reader(node, catalogue, cpu, parts, spec);
  if (const auto tree = node.optional("tree")) {
    reader.read_tree(*tree);
  } else {
    reader.read_numbers();
  }
}

}  // namespace trainyard
