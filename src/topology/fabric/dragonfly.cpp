// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric/dragonfly.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "topology/routing/dragonfly_router.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMostGroups = 4096;
constexpr std::int64_t kMostInGroup = 1024;
constexpr std::int64_t kMostSwitchesOfDragonfly = 200'000;
constexpr std::int64_t kMostLinks = 4096;  // Links from a switch to one other.

int count(const ConfigNode& node, std::string_view key, std::int64_t most) {
  return static_cast<int>(node.required(key).as_integer(1, most));
}

int count_or_one(const ConfigNode& node, std::string_view key, std::int64_t most) {
  const auto value = node.optional(key);
  return value ? static_cast<int>(value->as_integer(1, most)) : 1;
}

void read_global_links(const ConfigNode& node, DragonflySpec& spec) {
  const ConfigNode links = node.required("global_links");
  const int total = static_cast<int>(links.as_integer(1, kMostLinks));
  spec.bundle = count_or_one(node, "bundle", kMostParallelCables);
  if (total % spec.bundle != 0) {
    links.fail(fmt::format("a multiple of the {} links of a bundle", spec.bundle), links.found());
  }
  spec.bundles = total / spec.bundle;
}

void check_ports(const ConfigNode& node, const DragonflySpec& spec, std::string_view what,
                 int endpoints, int neighbours, int gateways) {
  const int bundles = ((spec.groups - 1) * spec.bundles + gateways - 1) / gateways;
  const bool is_gateway = !spec.has_spines || endpoints == 0;
  const int global = is_gateway ? bundles * spec.bundle : 0;
  const int local = neighbours * spec.local_links;
  if (endpoints + local + global > spec.part.ports) {
    node.required("switch").fail(fmt::format(
        "{} has {} ports, and a {} needs {}: {} for endpoints, {} local, {} global", spec.part.name,
        spec.part.ports, what, endpoints + local + global, endpoints, local, global));
  }
}

void check_size(const FabricContext& context, const DragonflySpec& spec) {
  const ConfigNode& node = context.node;
  const std::int64_t switches = std::int64_t{spec.groups} * spec.group_size();
  if (switches > kMostSwitchesOfDragonfly) {
    node.required("groups").fail(
        fmt::format("at most {} switches in all", kMostSwitchesOfDragonfly),
        fmt::format("{}", switches));
  }
  if (spec.has_spines) {
    check_ports(node, spec, "leaf", spec.endpoints_per_switch, spec.spines, 1);
    check_ports(node, spec, "spine", 0, spec.leaves, spec.spines);
  } else {
    check_ports(node, spec, "switch", spec.endpoints_per_switch, spec.leaves - 1, spec.leaves);
  }
  std::int64_t nics = 0;
  for (const ServerSpec* server : context.servers) {
    nics += server->nics;
  }
  const std::int64_t most = std::int64_t{spec.groups} * spec.leaves * spec.endpoints_per_switch;
  if (nics > most) {
    context.nodes.fail(fmt::format(
        "at most {} NICs fit {} groups of {} switches of {}, found {}: lower nodes or add groups",
        most, spec.groups, spec.leaves, spec.endpoints_per_switch, nics));
  }
}

class Dragonfly final : public Fabric {
 public:
  Dragonfly(RoutingOptions routing, DragonflySpec spec)
      : Fabric(std::move(routing)), spec_(std::move(spec)) {}

  void add_to(TopologyBuilder& builder, const std::vector<ServerNodes>& servers) override {
    add_switches(builder);
    add_endpoints(builder, servers);
    for (int group = 0; group < spec_.groups; ++group) {
      join_group(builder, group);
    }
    for (int group = 0; group < spec_.groups; ++group) {
      for (int other = group + 1; other < spec_.groups; ++other) {
        join_groups(builder, group, other);
      }
    }
    FabricShape& shape = routing_.fabric;
    shape.first_switch = nodes_.front();
    shape.switches = static_cast<std::uint32_t>(nodes_.size());
    shape.group_size = static_cast<std::uint32_t>(spec_.group_size());
    shape.group_leaves = spec_.has_spines ? static_cast<std::uint32_t>(spec_.leaves) : 0;
  }

 private:
  void add_switches(TopologyBuilder& builder) {
    for (int group = 0; group < spec_.groups; ++group) {
      for (int index = 0; index < spec_.group_size(); ++index) {
        const bool is_spine = index >= spec_.leaves;
        const std::string_view kind = !spec_.has_spines ? "s" : is_spine ? "spine" : "leaf";
        const int number = is_spine ? index - spec_.leaves : index;
        nodes_.push_back(
            add_switch(builder, spec_.part, fmt::format("g{}{}{}", group, kind, number)));
      }
    }
  }

  void add_endpoints(TopologyBuilder& builder, const std::vector<ServerNodes>& servers) {
    int endpoint = 0;
    for (const ServerNodes& server : servers) {
      for (const NodeId nic : server.nics) {
        const int leaf = endpoint / spec_.endpoints_per_switch;
        builder.add_duplex_link(nic, node(leaf / spec_.leaves, leaf % spec_.leaves),
                                spec_.host_links[static_cast<std::size_t>(endpoint)]);
        ++endpoint;
      }
    }
  }

  void join_group(TopologyBuilder& builder, int group) {
    for (int first = 0; first < spec_.leaves; ++first) {
      const int next = spec_.has_spines ? spec_.leaves : first + 1;
      for (int second = next; second < spec_.group_size(); ++second) {
        for (int copy = 0; copy < spec_.local_links; ++copy) {
          builder.add_duplex_link(node(group, first), node(group, second), spec_.local_link);
        }
      }
    }
  }

  void join_groups(TopologyBuilder& builder, int group, int other) {
    for (int bundle = 0; bundle < spec_.bundles; ++bundle) {
      const NodeId from = node(group, spec_.gateway(group, other, bundle));
      const NodeId to = node(other, spec_.gateway(other, group, bundle));
      for (int copy = 0; copy < spec_.bundle; ++copy) {
        builder.add_duplex_link(from, to, spec_.global_link);
      }
    }
  }

  [[nodiscard]] NodeId node(int group, int index) const {
    return nodes_[static_cast<std::size_t>(group) * static_cast<std::size_t>(spec_.group_size()) +
                  static_cast<std::size_t>(index)];
  }

  DragonflySpec spec_;
  std::vector<NodeId> nodes_;
};

}  // namespace

int DragonflySpec::gateway(int from, int to, int bundle_number) const {
  const int place = (to - from - 1 + groups) % groups;
  const int gateways = has_spines ? spines : leaves;
  return (has_spines ? leaves : 0) + (place * bundles + bundle_number) % gateways;
}

DragonflySpec read_dragonfly_spec(const FabricContext& context, bool has_spines) {
  const ConfigNode& node = context.node;
  const CableReader cables(context);
  DragonflySpec spec;
  spec.has_spines = has_spines;
  spec.groups = count(node, "groups", kMostGroups);
  spec.leaves = count(node, has_spines ? "leaves_per_group" : "switches_per_group", kMostInGroup);
  spec.spines = has_spines ? count(node, "spines_per_group", kMostInGroup) : 0;
  spec.endpoints_per_switch = count(node, "endpoints_per_switch", kMostLinks);
  spec.local_links = count_or_one(node, "local_links", kMostParallelCables);
  read_global_links(node, spec);
  spec.part = read_switch(context, node.required("switch"));
  const SimTime local = cable_delay(node.required("local_cable"));
  const auto host_cable = node.optional("host_cable");
  const SimTime host = host_cable ? cable_delay(*host_cable) : local;
  for (const ServerSpec* server : context.servers) {
    cables.add_nic_links(*server, spec.part, host, spec.host_links);
  }
  const double efficiency = first_efficiency(context);
  spec.local_link = cables.link(spec.part.speed, efficiency, local);
  spec.global_link =
      cables.link(spec.part.speed, efficiency, cable_delay(node.required("global_cable")));
  check_size(context, spec);
  return spec;
}

std::unique_ptr<Fabric> read_dragonfly(const FabricContext& context, bool has_spines) {
  RoutingOptions routing = read_routing(context.node);
  DragonflySpec spec = read_dragonfly_spec(context, has_spines);
  // One for each group that a path visits (topology/routing/dragonfly_router.h).
  routing.fabric.virtual_channels = read_virtual_channels(
      context.node, DragonflyRouter::may_misroute(traits(routing.policy)) ? 3 : 2);
  return std::make_unique<Dragonfly>(std::move(routing), std::move(spec));
}

}  // namespace trainyard
