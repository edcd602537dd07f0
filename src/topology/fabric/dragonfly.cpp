// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric/dragonfly.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "topology/routing/dragonfly_router.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMaxGroups = 4096;
constexpr std::int64_t kMaxInGroup = 1024;
constexpr std::int64_t kMaxSwitchesOfDragonfly = 200'000;
constexpr std::int64_t kMaxLinks = 4096;  // Links from a switch to one other.

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
  const ConfigNode& node = context.node();
  const std::int64_t switches = std::int64_t{spec.groups} * spec.group_size();
  if (switches > kMaxSwitchesOfDragonfly) {
    node.required("groups").fail(fmt::format("at most {} switches in all", kMaxSwitchesOfDragonfly),
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
  const std::int64_t max = std::int64_t{spec.groups} * spec.leaves * spec.endpoints_per_switch;
  if (nics > max) {
    context.nodes.fail(fmt::format(
        "at most {} NICs fit {} groups of {} switches of {}, found {}: lower nodes or add groups",
        max, spec.groups, spec.leaves, spec.endpoints_per_switch, nics));
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

void dragonfly_fields(Fields& fields, FabricKeys& keys, bool has_spines) {
  constexpr Whole kInGroup{1, kMaxInGroup};
  fields.required("groups", keys.groups, Whole{1, kMaxGroups}, "Groups of a dragonfly.");
  if (has_spines) {
    fields.required("leaves_per_group", keys.group_leaves, kInGroup, "Of `dragonfly-plus`.");
    fields.required("spines_per_group", keys.group_spines, kInGroup, "Of `dragonfly-plus`.");
  } else {
    fields.required("switches_per_group", keys.group_leaves, kInGroup, "Of `dragonfly`.");
  }
  fields.required("endpoints_per_switch", keys.endpoints_per_switch, Whole{1, kMaxLinks},
                  "Endpoints of a switch or leaf without tiers: what is needed.");
  fields.optional("local_links", keys.local_links, Whole{1, kMaxParallelCables},
                  "Links between two switches of a group: 1.");
  fields.required("global_links", keys.global_links, Whole{1, kMaxLinks},
                  "Links between two groups.");
  fields.optional("bundle", keys.bundle, Whole{1, kMaxParallelCables},
                  "So many of them join the same two switches: 1.");
  add_group_fields(fields, keys);
  fields.check([&](const ConfigNode& node) {
    if (keys.global_links % keys.bundle != 0) {
      const ConfigNode links = node.required("global_links");
      links.fail(fmt::format("a multiple of the {} links of a bundle", keys.bundle), links.found());
    }
  });
}

std::unique_ptr<Fabric> read_dragonfly(const FabricContext& context, bool has_spines) {
  const FabricKeys& keys = context.keys;
  DragonflySpec spec{read_group_links(context)};
  spec.has_spines = has_spines;
  spec.groups = keys.groups;
  spec.leaves = keys.group_leaves;
  spec.spines = keys.group_spines;
  spec.endpoints_per_switch = *keys.endpoints_per_switch;
  spec.local_links = keys.local_links;
  spec.bundle = keys.bundle;
  spec.bundles = keys.global_links / keys.bundle;
  check_size(context, spec);
  RoutingOptions routing = keys.routing;
  // One for each group that a path visits (topology/routing/dragonfly_router.h).
  routing.fabric.virtual_channels =
      keys.virtual_channels.value_or(DragonflyRouter::may_misroute(traits(routing.policy)) ? 3 : 2);
  return std::make_unique<Dragonfly>(std::move(routing), std::move(spec));
}

}  // namespace trainyard
