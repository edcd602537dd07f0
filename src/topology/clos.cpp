// SPDX-License-Identifier: Apache-2.0
#include "topology/clos.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "sim/check.h"

namespace trainyard {
namespace {

constexpr int kMostPorts = 4096;

int ceiling(int value, int divisor) {
  return (value + divisor - 1) / divisor;
}

// Finds the numbers of leaves, uplinks and spines.
class ClosSizer {
 public:
  ClosSizer(const FabricContext& context, const SwitchSpec& leaf)
      : node_(context.node),
        nodes_node_(context.nodes),
        leaf_(leaf),
        servers_(static_cast<int>(context.servers.size())),
        nics_(context.servers[0]->nics) {}

  void size_single_switch(ClosSpec& spec) const {
    if (servers_ > leaf_.ports / nics_) {
      fail_size(leaf_.ports / nics_, fmt::format("one {} of {} ports", leaf_.name, leaf_.ports));
    }
    spec.leaves = 1;
    spec.servers_per_leaf = servers_;
  }

  void size_leaves(ClosSpec& spec) {
    ports_per_server_ = spec.rails ? 1 : nics_;
    leaves_per_group_ = spec.rails ? nics_ : 1;
    if (const auto ratio = node_.optional("oversubscription")) {
      oversubscription_ = ratio->as_number(0.1, 100.0);
    }
    spec.servers_per_leaf = servers_per_leaf();
    const int groups = ceiling(servers_, spec.servers_per_leaf);
    spec.leaves = groups * leaves_per_group_;
  }

  void size_spines(ClosSpec& spec, const ConfigNode& spine_node) const {
    const SwitchSpec& spine = spec.spine;
    const int spine_ports = spine.ports;
    const int used = std::min(spec.servers_per_leaf, servers_) * ports_per_server_;
    spec.uplinks = uplinks_for(used);
    const auto uplinks = node_.optional("uplinks");
    if (uplinks) {
      spec.uplinks = static_cast<int>(uplinks->as_integer(1, kMostPorts));
    }
    if (used + spec.uplinks > leaf_.ports) {
      uplinks.value_or(node_).fail(
          fmt::format("{} ports down and {} up are more than the {} ports of {}", used,
                      spec.uplinks, leaf_.ports, leaf_.name));
    }
    if (spec.leaves > spine_ports) {
      const int groups = spine_ports / leaves_per_group_;
      if (groups == 0) {
        spine_node.fail(fmt::format("{} has {} ports, and {} leaves need one each", spine.name,
                                    spine_ports, spec.leaves));
      }
      fail_size(groups * spec.servers_per_leaf, fmt::format("two tiers of {} below {} of {} ports",
                                                            leaf_.name, spine.name, spine_ports));
    }
    spec.spines = spines(spec, spine_ports);
  }

 private:
  [[noreturn]] void fail_size(int most, const std::string& fabric) const {
    nodes_node_.fail(
        fmt::format("at most {} servers of {} NICs fit {}, found {}: lower nodes or take switches "
                    "with more ports",
                    most, nics_, fabric, servers_));
  }

  [[nodiscard]] int uplinks_for(int down) const {
    return std::max(1, static_cast<int>(std::ceil(down / oversubscription_ - 1e-9)));
  }

  [[nodiscard]] int servers_per_leaf() const {
    if (const auto given = node_.optional("nodes_per_leaf")) {
      const int servers = static_cast<int>(given->as_integer(1, kMostPorts));
      if (servers * ports_per_server_ > leaf_.ports) {
        given->fail(fmt::format("at most {}, the ports of {} over those of a server",
                                leaf_.ports / ports_per_server_, leaf_.name),
                    given->found());
      }
      return servers;
    }
    const bool one_leaf = leaves_per_group_ == 1 && servers_ <= leaf_.ports / ports_per_server_;
    if (one_leaf) {
      return servers_;
    }
    const int down = static_cast<int>(leaf_.ports * oversubscription_ / (1.0 + oversubscription_));
    if (down < ports_per_server_) {
      node_.required("leaf").fail(
          fmt::format("{} has {} ports, too few for the {} NICs of a server and their uplinks",
                      leaf_.name, leaf_.ports, ports_per_server_));
    }
    return down / ports_per_server_;
  }

  [[nodiscard]] int spines(const ClosSpec& spec, int spine_ports) const {
    if (const auto given = node_.optional("spines")) {
      const int count = static_cast<int>(given->as_integer(1, kMostPorts));
      if (spec.uplinks % count != 0) {
        given->fail(fmt::format("a divisor of the {} uplinks of a leaf", spec.uplinks),
                    given->found());
      }
      if (spec.leaves * (spec.uplinks / count) > spine_ports) {
        given->fail(
            fmt::format("{} leaves of {} uplinks need more than the {} ports of each of "
                        "{} spines",
                        spec.leaves, spec.uplinks, spine_ports, count));
      }
      return count;
    }
    int count = ceiling(spec.leaves * spec.uplinks, spine_ports);
    while (spec.uplinks % count != 0) {
      ++count;
    }
    return count;
  }

  const ConfigNode& node_;
  const ConfigNode& nodes_node_;
  const SwitchSpec& leaf_;
  int servers_;
  int nics_;
  int ports_per_server_ = 1;  // On one leaf.
  int leaves_per_group_ = 1;
  double oversubscription_ = 1.0;
};

ClosSpec read_tiers(const FabricContext& context, const CableReader& cables, ClosSizer& sizer,
                    ClosSpec spec) {
  const ConfigNode& node = context.node;
  const SimTime cable = cable_delay(node.required("cable"));
  const auto spine_node = spec.leaves > 1 ? node.required("spine") : node.optional("spine");
  const auto spine_cable = node.optional("spine_cable");
  const SimTime flight = spine_cable ? cable_delay(*spine_cable) : cable;
  if (spec.leaves == 1) {
    if (spine_node) {
      (void)context.catalogue.network_switch(*spine_node);
    }
    for (const std::string_view unused : {"uplinks", "spines"}) {
      if (const auto value = node.optional(unused)) {
        value->skip();  // Of use with more servers: --nodes must not make it an error.
      }
    }
    return spec;
  }
  spec.spine = read_switch(context, *spine_node);
  sizer.size_spines(spec, *spine_node);
  spec.spine_link = cables.link(std::min(spec.leaf.speed, spec.spine.speed),
                                context.servers[0]->network_efficiency, flight);
  return spec;
}

class Clos final : public Fabric {
 public:
  Clos(RoutingOptions routing, ClosSpec spec) : Fabric(std::move(routing)), spec_(spec) {}

  // Links to one spine are neighbours in a leaf's list: Static relies on it to spread the way down
  // as it does the way up.
  void add_to(TopologyBuilder& builder, const std::vector<ServerNodes>& servers) override {
    const std::vector<NodeId> leaves = add_switches(builder, spec_.leaf, "leaf", spec_.leaves);
    for (std::size_t server = 0; server < servers.size(); ++server) {
      const std::vector<NodeId>& nics = servers[server].nics;
      const std::size_t group = server / static_cast<std::size_t>(spec_.servers_per_leaf);
      for (std::size_t nic = 0; nic < nics.size(); ++nic) {
        const std::size_t leaf = spec_.rails ? group * nics.size() + nic : group;
        builder.add_duplex_link(nics[nic], leaves[leaf], spec_.host_link);
      }
    }
    const std::vector<NodeId> spines = add_switches(builder, spec_.spine, "spine", spec_.spines);
    for (const NodeId leaf : leaves) {
      for (const NodeId spine : spines) {
        for (int parallel = 0; parallel < spec_.uplinks / spec_.spines; ++parallel) {
          builder.add_duplex_link(leaf, spine, spec_.spine_link);
        }
      }
    }
  }

 private:
  static std::vector<NodeId> add_switches(TopologyBuilder& builder, const SwitchSpec& spec,
                                          std::string_view name, int count) {
    std::vector<NodeId> nodes;
    for (int index = 0; index < count; ++index) {
      nodes.push_back(add_switch(builder, spec, fmt::format("{}{}", name, index)));
    }
    return nodes;
  }

  ClosSpec spec_;
};

std::unique_ptr<Fabric> read_as(const FabricContext& context, ClosTemplate layout) {
  RoutingOptions routing = read_routing(context.node);
  return std::make_unique<Clos>(std::move(routing), read_clos_spec(context, layout));
}

}  // namespace

ClosSpec read_clos_spec(const FabricContext& context, ClosTemplate layout) {
  const ServerSpec& server = *context.servers[0];
  const CableReader cables(context);
  ClosSpec spec;
  spec.rails = layout == ClosTemplate::RailOptimised;
  spec.leaf = read_switch(context, context.node.required("leaf"));
  spec.host_link =
      cables.link(std::min(server.nic_speed, spec.leaf.speed), server.network_efficiency,
                  cable_delay(context.node.required("cable")));
  ClosSizer sizer(context, spec.leaf);
  if (layout == ClosTemplate::SingleSwitch) {
    sizer.size_single_switch(spec);
    return spec;
  }
  sizer.size_leaves(spec);
  return read_tiers(context, cables, sizer, spec);
}

std::unique_ptr<Fabric> read_single_switch(const FabricContext& context) {
  return read_as(context, ClosTemplate::SingleSwitch);
}
std::unique_ptr<Fabric> read_clos(const FabricContext& context) {
  return read_as(context, ClosTemplate::Clos);
}
std::unique_ptr<Fabric> read_rail_optimised(const FabricContext& context) {
  return read_as(context, ClosTemplate::RailOptimised);
}

}  // namespace trainyard
