// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric/graph.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "topology/fabric/grid.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMaxSwitchesOfGraph = 100'000;
constexpr std::int64_t kMaxCopiesOfCable = 4096;

void switch_fields(Fields& fields, GraphSwitchKeys& keys, Catalogue* catalogue) {
  fields.check([&](const ConfigNode& node) { keys.node = node; });
  fields.required("name", keys.name, Text{}, "Name without /.");
  fields.required("part", keys.part, part_named(catalogue, &Catalogue::network_switch), "Part.");
  fields.optional("count", keys.count, Whole{1, kMaxSwitchesOfGraph},
                  "So many, with numbers behind the name.");
}

void link_fields(Fields& fields, GraphLinkKeys& keys) {
  fields.check([&](const ConfigNode& node) { keys.node = node; });
  fields.required("from", keys.from, Text{}, "Switch, or a NIC such as server0/nic3.");
  fields.required("to", keys.to, Text{}, "The other end.");
  fields.optional("count", keys.count, Whole{1, kMaxCopiesOfCable}, "Cables: 1.");
  fields.optional("cable", keys.cable, kLength, "Length: `cable` of the fabric.");
  fields.optional("rate", keys.rate, Rate{}, "Line rate: that of a port of the slower end.");
}

struct GraphLinks {
  List<Group<decltype(&link_fields)>> list{{link_fields}};
  void read(const Fields& parent, const ConfigNode& node, std::vector<GraphLinkKeys>& links) const {
    list.read(parent, node, links);
  }
  void describe(Schema& schema, std::vector<GraphLinkKeys>& links) const {
    kGridLinks.describe(schema);
    list.describe(schema.alternatives.emplace_back(), links);
  }
};

enum class EndKind : std::uint8_t { Switch, Nic, Gpu };

// A device that cables may end at, and what it has left for them.
struct Device {
  EndKind kind = EndKind::Switch;
  std::size_t server = 0;
  std::size_t index = 0;    // Among the switches, or the NICs or GPUs of its server.
  Bandwidth speed;          // Of one port of a switch, of all of a NIC; zero: no limit of its own.
  Bandwidth port_speed;     // The speed of one port, of a NIC as of a switch.
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
    for (const GraphLinkKeys& link : context_.keys.graph_links) {
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
    for (const GraphSwitchKeys& item : context_.keys.graph_switches) {
      const std::string& name = item.name;
      const ConfigNode name_node = item.node->required("name");
      const SwitchSpec spec = use_switch(*item.part, context_.parts);
      const std::int64_t copies = item.count.value_or(1);
      if (name.empty() || name.find('/') != std::string::npos) {
        name_node.fail("a name without /", name_node.found());
      }
      if (static_cast<std::int64_t>(spec_.switches.size()) + copies > kMaxSwitchesOfGraph) {
        item.node->fail(fmt::format("at most {} switches in all", kMaxSwitchesOfGraph));
      }
      for (std::int64_t copy = 0; copy < copies; ++copy) {
        const std::string full = item.count ? fmt::format("{}{}", name, copy) : name;
        if (by_name_.contains(full)) {
          name_node.fail(fmt::format("there is a switch {} already", full));
        }
        Device device;
        device.index = spec_.switches.size();
        device.speed = spec.speed;
        device.port_speed = spec.speed;
        device.ports = spec.ports;
        device.left = spec.ports;
        enter(full, device);
        spec_.switches.emplace_back(full, spec);
      }
    }
  }

  void enter_servers() {
    const bool gpus = context_.keys.attaches_gpus;
    for (std::size_t server = 0; server < context_.servers.size(); ++server) {
      const ServerSpec& spec = *context_.servers[server];
      Device device;
      device.server = server;
      device.kind = EndKind::Nic;
      for (device.index = 0; device.index < spec.nic_specs.size(); ++device.index) {
        const NicSpec& nic = spec.nic_specs[device.index];
        device.speed = nic.speed();
        device.port_speed = nic.port_speed;
        device.efficiency = nic.efficiency;
        device.left = nic.speed().bits_per_second();
        enter(fmt::format("server{}/nic{}", server, device.index), device);
      }
      device.kind = EndKind::Gpu;
      device.speed = Bandwidth();
      device.port_speed = Bandwidth();
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

  // The speed of the slower end; zero where neither has one.
  static Bandwidth slower_of(Bandwidth one, Bandwidth other) {
    return one == Bandwidth() ? other : other == Bandwidth() ? one : std::min(one, other);
  }

  // The line rate of one cable: that of a port of the slower end, or as given.
  [[nodiscard]] Bandwidth read_rate(const GraphLinkKeys& link, const Device& from,
                                    const Device& to) const {
    const Bandwidth max = slower_of(from.speed, to.speed);
    if (!link.rate && max == Bandwidth()) {
      link.node->fail("the key \"rate\", as neither end has a speed of its own");
    }
    const Bandwidth rate = link.rate.value_or(slower_of(from.port_speed, to.port_speed));
    const Bandwidth limit = max == Bandwidth() ? kMaxBandwidth : max;
    if (rate > limit) {
      const ConfigNode given = link.node->required("rate");
      given.fail(fmt::format("at most {}, the speed of the slower end", to_string(limit)),
                 given.found());
    }
    return rate;
  }

  void read_link(const GraphLinkKeys& link) {
    Cable cable;
    const ConfigNode from = link.node->required("from");
    const ConfigNode to = link.node->required("to");
    cable.from = read_end(from);
    cable.to = read_end(to);
    if (cable.from == cable.to) {
      to.fail("another device than from", to.found());
    }
    if (!link.cable && !context_.keys.cable) {
      (void)context_.node().required("cable");
    }
    cable.count = link.count;
    const SimTime flight = link.cable ? *link.cable : *context_.keys.cable;
    Device& first = spec_.devices[cable.from];
    Device& second = spec_.devices[cable.to];
    const Bandwidth rate = read_rate(link, first, second);
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
    constexpr std::size_t kMaxNamed = 4;
    std::size_t unused = 0;
    std::string named;
    for (std::size_t index = 0; index < spec_.devices.size(); ++index) {
      const Device& device = spec_.devices[index];
      if (!device.is_used && (device.kind == EndKind::Nic || device.kind == EndKind::Switch)) {
        named += unused < kMaxNamed ? (unused == 0 ? "" : ", ") + names_[index] : "";
        ++unused;
      }
    }
    if (unused > 0) {
      spec_.warnings.push_back(fmt::format("{} switches and NICs have no link of the fabric: {}{}",
                                           unused, named, unused > kMaxNamed ? ", ..." : ""));
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

void graph_fields(Fields& fields, FabricKeys& keys) {
  const auto switches = [&](Fields& inner, GraphSwitchKeys& item) {
    switch_fields(inner, item, keys.catalogue);
  };
  fields.optional("switches", keys.graph_switches, List{Group{switches}}, "Switches of a graph.");
  fields.required("links", keys.graph_links, GraphLinks{},
                  "Of a graph: all. Of a grid: between neighbours, or for each dimension: 1.");
  fields.optional("cable", keys.cable, kLength, "Length such as `10 m`; of most fabrics required.");
  add_channel_field(fields, keys);
}

std::unique_ptr<Fabric> read_graph(const FabricContext& context) {
  RoutingOptions routing = context.keys.routing;
  routing.fabric.virtual_channels = context.keys.virtual_channels.value_or(1);
  return std::make_unique<Graph>(std::move(routing), GraphReader(context).read());
}

}  // namespace trainyard
