// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric/clos.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "sim/check.h"
#include "topology/fabric/clos_size.h"

namespace trainyard {
namespace {

constexpr Whole kPorts{1, 4096};

class ClosReader {
 public:
  ClosReader(const FabricContext& context, const ClosForm& form)
      : context_(context),
        keys_(context.keys),
        form_(form),
        cables_(context),
        efficiency_(std::ranges::max_element(
                        context.servers, {},
                        [](const ServerSpec* server) { return server->network_efficiency; })[0]
                        ->network_efficiency) {}

  ClosSpec read() && {
    spec_.rails = form_.rails;
    spec_.leaf = use_switch(*keys_.part, context_.parts);
    ClosSizer sizer(context_, form_, spec_);
    for (const ServerSpec* server : context_.servers) {
      if (!server->has_equal_nics()) {
        context_.node().required("template").fail("needs NICs of one part in each server");
      }
      const Bandwidth port(server->nic_speed.bits_per_second() / spec_.planes / spec_.tors);
      spec_.host_links.push_back(
          cables_.link(std::min(port, spec_.leaf.speed), server->network_efficiency, *keys_.cable));
    }
    if (form_.is_fat_tree) {
      sizer.size_fat_tree();
      spec_.spine = spec_.leaf;
      spec_.core = spec_.leaf;
      read_links();
      return std::move(spec_);
    }
    sizer.place_servers();
    if (!form_.is_single) {
      read_upper_tiers(sizer);
    }
    return std::move(spec_);
  }

 private:
  void read_upper_tiers(ClosSizer& sizer) {
    if (sizer.needs_spines()) {
      spec_.spine = use_switch(named(keys_.spine, "spine"), context_.parts);
      if (keys_.tiers == 3) {
        (void)named(keys_.core, "core");
      }
      if (keys_.core != nullptr && keys_.tiers != 2 && (keys_.tiers == 3 || sizer.needs_cores())) {
        spec_.core = use_switch(*keys_.core, context_.parts);
        sizer.size_three_tiers();
      } else {
        sizer.size_two_tiers();
      }
    }
    read_links();
  }

  // The part under `key`, which must be there.
  [[nodiscard]] const SwitchModel& named(const SwitchModel* part, std::string_view key) const {
    if (part == nullptr) {
      (void)context_.node().required(key);
    }
    return *part;
  }

  void read_links() {
    const SimTime spine_flight = keys_.spine_cable.value_or(*keys_.cable);
    const SimTime core_flight = keys_.core_cable.value_or(spine_flight);
    if (spec_.tiers > 1) {
      spec_.spine_link =
          cables_.link(std::min(spec_.leaf.speed, spec_.spine.speed), efficiency_, spine_flight);
    }
    if (spec_.tiers > 2) {
      spec_.core_link =
          cables_.link(std::min(spec_.spine.speed, spec_.core.speed), efficiency_, core_flight);
    }
  }

  const FabricContext& context_;
  const FabricKeys& keys_;
  ClosForm form_;
  CableReader cables_;
  double efficiency_;  // The efficiency of the NICs that fill links above the leaves best.
  ClosSpec spec_;
};

class Clos final : public Fabric {
 public:
  Clos(RoutingOptions routing, ClosSpec spec)
      : Fabric(std::move(routing)), spec_(std::move(spec)) {}

  void add_to(TopologyBuilder& builder, const std::vector<ServerNodes>& servers) override {
    CHECK(servers.size() == spec_.group_of_server.size(), "other servers than were described");
    for (int plane = 0; plane < spec_.planes; ++plane) {
      const std::string prefix = spec_.planes > 1 ? fmt::format("plane{}-", plane) : "";
      const auto leaves = add_switches(builder, spec_.leaf, prefix + "leaf", spec_.leaves);
      if (plane == 0) {
        routing_.fabric.first_switch = leaves.front();
      }
      join_servers(builder, servers, leaves);
      const auto spines = add_switches(builder, spec_.spine, prefix + "spine", spec_.spines);
      join_leaves(builder, leaves, spines);
      const auto cores = add_switches(builder, spec_.core, prefix + "core", spec_.cores);
      join_spines(builder, spines, cores);
    }
    routing_.fabric.switches =
        static_cast<std::uint32_t>(spec_.planes * (spec_.leaves + spec_.spines + spec_.cores));
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

  void join_servers(TopologyBuilder& builder, const std::vector<ServerNodes>& servers,
                    const std::vector<NodeId>& leaves) const {
    for (std::size_t server = 0; server < servers.size(); ++server) {
      int leaf = spec_.group_of_server[server] * spec_.leaves_per_group;
      for (const NodeId nic : servers[server].nics) {
        for (int tor = 0; tor < spec_.tors; ++tor) {
          builder.add_duplex_link(
              nic, leaves[static_cast<std::size_t>(leaf) + static_cast<std::size_t>(tor)],
              spec_.host_links[server]);
        }
        leaf += spec_.rails ? spec_.tors : 0;
      }
    }
  }

  // Links to one spine, and to one core, are neighbours in the list of a switch: Static relies on
  // it to spread the way down as it does the way up.
  void join_leaves(TopologyBuilder& builder, const std::vector<NodeId>& leaves,
                   const std::vector<NodeId>& spines) const {
    for (int leaf = 0; leaf < spec_.leaves && spec_.tiers > 1; ++leaf) {
      const int first = leaf / spec_.leaves_per_pod * spec_.spines_per_pod();
      for (int uplink = 0; uplink < spec_.uplinks; ++uplink) {
        const int spine = first + uplink / (spec_.uplinks / spec_.spines_per_pod());
        builder.add_duplex_link(leaves[static_cast<std::size_t>(leaf)],
                                spines[static_cast<std::size_t>(spine)], spec_.spine_link);
      }
    }
  }

  void join_spines(TopologyBuilder& builder, const std::vector<NodeId>& spines,
                   const std::vector<NodeId>& cores) const {
    for (int spine = 0; spine < spec_.spines && spec_.tiers > 2; ++spine) {
      const int first = spine % spec_.spines_per_pod() * spec_.cores_per_spine();
      for (int uplink = 0; uplink < spec_.spine_uplinks; ++uplink) {
        const int core = first + uplink / (spec_.spine_uplinks / spec_.cores_per_spine());
        builder.add_duplex_link(spines[static_cast<std::size_t>(spine)],
                                cores[static_cast<std::size_t>(core)], spec_.core_link);
      }
    }
  }

  ClosSpec spec_;
};

}  // namespace

// Keys that are of use with more servers are read always: --nodes must not make them errors.
void clos_fields(Fields& fields, FabricKeys& keys, const ClosForm& form) {
  constexpr Number kRatio{0.1, 100.0};
  const auto part = part_named(keys.catalogue, &Catalogue::network_switch);
  fields.required(form.is_fat_tree ? "switch" : "leaf", keys.part, part, "Part of leaves.");
  fields.required("cable", keys.cable, kLength,
                  "Length of a link, such as `10 m`; perhaps missing in a graph.");
  if (form.is_single) {
    return;
  }
  fields.optional("spine_cable", keys.spine_cable, kLength, "Between leaf and spine: `cable`.");
  fields.optional("core_cable", keys.core_cable, kLength, "Between spine and core: `spine_cable`.");
  fields.optional("planes", keys.planes, kPorts, "Copies, to which a NIC deals its ports: 1.");
  if (form.is_fat_tree) {
    fields.required("k", keys.k, Whole{2, kPorts.max}, "Number of a fat tree's pods, even.");
    return;
  }
  fields.optional("dual_tor", keys.is_dual_tor, Flag{},
                  "The ports that a NIC has in a plane go to different leaves.");
  fields.optional("spine", keys.spine, part, "Part, needed with two leaves or more.");
  fields.optional("core", keys.core, part, "Part, needed if two tiers are not enough.");
  fields.optional("tiers", keys.tiers, Whole{2, 3}, "Tiers of two leaves or more: what it takes.");
  fields.optional("oversubscription", keys.oversubscription, kRatio,
                  "Ports down over ports up of a leaf: 1.");
  fields.optional("nodes_per_leaf", keys.nodes_per_leaf, kPorts,
                  "Servers below a leaf: what fits.");
  fields.optional("uplinks", keys.uplinks, kPorts, "Of a leaf: as `oversubscription` says.");
  fields.optional("spines", keys.spines, kPorts, "Of a pod, a divisor of `uplinks`: the fewest.");
  fields.optional("leaves_per_pod", keys.leaves_per_pod, kPorts,
                  "In three tiers: the ports down of a spine.");
  fields.optional("spine_oversubscription", keys.spine_oversubscription, kRatio,
                  "Ports down over ports up of a spine: 1.");
  fields.optional("spine_uplinks", keys.spine_uplinks, kPorts,
                  "Of a spine: as `spine_oversubscription` says.");
  fields.optional("cores", keys.cores, Whole{1, kPorts.max * kPorts.max},
                  "Spines of a pod times a divisor of `spine_uplinks`: the fewest.");
}

ClosSpec read_clos_spec(const FabricContext& context, const ClosForm& form) {
  return ClosReader(context, form).read();
}

std::unique_ptr<Fabric> read_clos(const FabricContext& context, const ClosForm& form) {
  return std::make_unique<Clos>(context.keys.routing, read_clos_spec(context, form));
}

}  // namespace trainyard
