// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric/graph.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace trainyard {
namespace {

constexpr std::int64_t kMostSwitchesOfGraph = 100'000;
constexpr std::int64_t kMostCopiesOfCable = 4096;

enum class EndKind : std::uint8_t { Switch, Nic, Gpu };

// A device that cables may end at, and what it has left for them.
struct Device {
  EndKind kind = EndKind::Switch;
  std::size_t server = 0;
  std::size_t index = 0;    // Among the switches, or the NICs or GPUs of its server.
  Bandwidth speed;          // Of one port of a switch, of all of a NIC; zero: no limit of its own.
  double efficiency = 0.0;  // Payload over line rate, where it has one.
  std::int64_t ports = 0;
  std::int64_t left = 0;  // Ports of a switch, bits per second of a NIC.
  bool is_used = false;
};

struct Cable {
  std::size_t from = 0;
  std::size_t to = 0;
  int count = 1;
  LinkSpec spec;
};

struct GraphSpec {
  std::vector<std::pair<std::string, SwitchSpec>> switches;  // With their names.
  std::vector<Device> devices;
  std::vector<Cable> cables;
  std::vector<std::string> warnings;
};

class GraphReader {
 public:
  explicit GraphReader(const FabricContext& context) : context_(context), cables_reader_(context) {}

  GraphSpec read() && {
    read_switches();
    enter_servers();
    for (const ConfigNode& link : context_.node.required("links").items()) {
      read_link(link);
    }
    warn_of_unused();
    return std::move(spec_);
  }

 private:
  void enter(const std::string& name, const Device& device) {
    by_name_.emplace(name, spec_.devices.size());
    spec_.devices.push_back(device);
    names_.push_back(name);
  }

  void read_switches() {
    const auto list = context_.node.optional("switches");
    for (const ConfigNode& item : list ? list->items() : std::vector<ConfigNode>()) {
      const ConfigNode name_node = item.required("name");
      const std::string name = name_node.as_string();
      const SwitchSpec spec = read_switch(context_, item.required("part"));
      const auto count = item.optional("count");
      const std::int64_t copies = count ? count->as_integer(1, kMostSwitchesOfGraph) : 1;
      if (name.empty() || name.find('/') != std::string::npos) {
        name_node.fail("a name without /", name_node.found());
      }
      if (static_cast<std::int64_t>(spec_.switches.size()) + copies > kMostSwitchesOfGraph) {
        item.fail(fmt::format("at most {} switches in all", kMostSwitchesOfGraph));
      }
      for (std::int64_t copy = 0; copy < copies; ++copy) {
        const std::string full = count ? fmt::format("{}{}", name, copy) : name;
        if (by_name_.contains(full)) {
          name_node.fail(fmt::format("there is a switch {} already", full));
        }
        Device device;
        device.index = spec_.switches.size();
        device.speed = spec.speed;
        device.ports = spec.ports;
        device.left = spec.ports;
        enter(full, device);
        spec_.switches.emplace_back(full, spec);
      }
    }
  }

  void enter_servers() {
    const bool gpus = attaches_gpus(context_.node);
    for (std::size_t server = 0; server < context_.servers.size(); ++server) {
      const ServerSpec& spec = *context_.servers[server];
      Device device;
      device.server = server;
      device.kind = EndKind::Nic;
      for (device.index = 0; device.index < spec.nic_specs.size(); ++device.index) {
        const NicSpec& nic = spec.nic_specs[device.index];
        device.speed = nic.speed();
        device.efficiency = nic.efficiency;
        device.left = nic.speed().bits_per_second();
        enter(fmt::format("server{}/nic{}", server, device.index), device);
      }
      device.kind = EndKind::Gpu;
      device.speed = Bandwidth();
      device.efficiency = 0.0;
      device.left = std::numeric_limits<std::int64_t>::max();
      const std::size_t of_server = gpus ? static_cast<std::size_t>(spec.gpus) : 0;
      for (device.index = 0; device.index < of_server; ++device.index) {
        enter(fmt::format("server{}/gpu{}", server, device.index), device);
      }
    }
  }

  [[nodiscard]] std::size_t read_end(const ConfigNode& node) const {
    const auto place = by_name_.find(node.as_string());
    if (place == by_name_.end()) {
      node.fail(
          "a switch of fabric.switches, or a NIC such as server0/nic0 (with attach: gpu also "
          "a GPU such as server0/gpu0)",
          node.found());
    }
    return place->second;
  }

  // The line rate of one cable: that of the slower end, or as given.
  [[nodiscard]] Bandwidth read_rate(const ConfigNode& node, const Device& from,
                                    const Device& to) const {
    Bandwidth most;
    for (const Device* end : {&from, &to}) {
      if (end->speed > Bandwidth() && (most == Bandwidth() || end->speed < most)) {
        most = end->speed;
      }
    }
    const auto given = node.optional("rate");
    if (!given && most == Bandwidth()) {
      node.fail("the key \"rate\", as neither end has a speed of its own");
    }
    const Bandwidth rate = given ? given->as_bandwidth() : most;
    const Bandwidth limit = most == Bandwidth() ? kMaxBandwidth : most;
    if (rate > limit) {
      given->fail(fmt::format("at most {}, the speed of the slower end", to_string(limit)),
                  given->found());
    }
    return rate;
  }

  void read_link(const ConfigNode& node) {
    Cable cable;
    const ConfigNode from = node.required("from");
    const ConfigNode to = node.required("to");
    cable.from = read_end(from);
    cable.to = read_end(to);
    if (cable.from == cable.to) {
      to.fail("another device than from", to.found());
    }
    if (const auto count = node.optional("count")) {
      cable.count = static_cast<int>(count->as_integer(1, kMostCopiesOfCable));
    }
    const auto own = node.optional("cable");
    const SimTime flight = cable_delay(own ? *own : context_.node.required("cable"));
    Device& first = spec_.devices[cable.from];
    Device& second = spec_.devices[cable.to];
    const Bandwidth rate = read_rate(node, first, second);
    take(from, first, cable.count, rate);
    take(to, second, cable.count, rate);
    cable.spec = cables_reader_.link(rate, efficiency(first, second), flight);
    spec_.cables.push_back(cable);
  }

  void take(const ConfigNode& node, Device& device, int count, Bandwidth rate) const {
    device.is_used = true;
    if (device.kind == EndKind::Gpu) {
      return;
    }
    const bool is_switch = device.kind == EndKind::Switch;
    device.left -= is_switch ? count : count * rate.bits_per_second();
    if (device.left < 0) {
      const std::string limit =
          is_switch ? fmt::format("{} ports", device.ports) : to_string(device.speed) + " in all";
      node.fail(fmt::format("the links of {} need more than its {}", node.as_string(), limit));
    }
  }

  // A property of NICs; between switches that of the first NIC that there is.
  [[nodiscard]] double efficiency(const Device& from, const Device& to) const {
    for (const Device* end : {&from, &to}) {
      if (end->kind == EndKind::Nic) {
        return end->efficiency;
      }
    }
    const auto nic = std::ranges::find(spec_.devices, EndKind::Nic, &Device::kind);
    return nic == spec_.devices.end() ? 1.0 : nic->efficiency;
  }

  void warn_of_unused() {
    constexpr std::size_t kMostNamed = 4;
    std::size_t unused = 0;
    std::string named;
    for (std::size_t index = 0; index < spec_.devices.size(); ++index) {
      const Device& device = spec_.devices[index];
      if (!device.is_used && (device.kind == EndKind::Nic || device.kind == EndKind::Switch)) {
        named += unused < kMostNamed ? (unused == 0 ? "" : ", ") + names_[index] : "";
        ++unused;
      }
    }
    if (unused > 0) {
      spec_.warnings.push_back(fmt::format("{} switches and NICs have no link of the fabric: {}{}",
                                           unused, named, unused > kMostNamed ? ", ..." : ""));
    }
  }

  const FabricContext& context_;
  CableReader cables_reader_;
  GraphSpec spec_;
  std::vector<std::string> names_;  // Names of devices.
  std::map<std::string, std::size_t> by_name_;
};

class Graph final : public Fabric {
 public:
  Graph(RoutingOptions routing, GraphSpec spec)
      : Fabric(std::move(routing)), spec_(std::move(spec)) {
    warnings_ = spec_.warnings;
  }

  void add_to(TopologyBuilder& builder, const std::vector<ServerNodes>& servers) override {
    std::vector<NodeId> switches;
    for (const auto& [name, part] : spec_.switches) {
      switches.push_back(add_switch(builder, part, name));
    }
    const auto node = [&](std::size_t index) {
      const Device& device = spec_.devices[index];
      switch (device.kind) {
        case EndKind::Switch:
          return switches[device.index];
        case EndKind::Nic:
          return servers[device.server].nics[device.index];
        case EndKind::Gpu:
          return servers[device.server].gpus[device.index];
      }
      return NodeId();
    };
    for (const Cable& cable : spec_.cables) {
      for (int copy = 0; copy < cable.count; ++copy) {
        builder.add_duplex_link(node(cable.from), node(cable.to), cable.spec);
      }
    }
  }

 private:
  GraphSpec spec_;
};

}  // namespace

std::unique_ptr<Fabric> read_graph(const FabricContext& context) {
  RoutingOptions routing = read_routing(context.node);
  routing.fabric.virtual_channels = read_virtual_channels(context.node, 1);
  return std::make_unique<Graph>(std::move(routing), GraphReader(context).read());
}

}  // namespace trainyard
