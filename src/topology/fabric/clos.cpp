// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric/clos.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "sim/check.h"
#include "topology/fabric/clos_size.h"

namespace trainyard {
namespace {

// Keys that are of use with more servers: --nodes must not make them errors.
constexpr std::array<std::string_view, 2> kSpineKeys = {"uplinks", "spines"};
constexpr std::array<std::string_view, 4> kCoreKeys = {"leaves_per_pod", "spine_oversubscription",
                                                       "spine_uplinks", "cores"};

class ClosReader {
 public:
  ClosReader(const FabricContext& context, const ClosForm& form)
      : context_(context),
        node_(context.node),
        form_(form),
        cables_(context),
        efficiency_(std::ranges::max_element(
                        context.servers, {},
                        [](const ServerSpec* server) { return server->network_efficiency; })[0]
                        ->network_efficiency) {}

  ClosSpec read() && {
    spec_.rails = form_.rails;
    spec_.leaf = read_switch(context_, node_.required(form_.is_fat_tree ? "switch" : "leaf"));
    flight_ = cable_delay(node_.required("cable"));
    ClosSizer sizer(context_, form_, spec_);
    for (const ServerSpec* server : context_.servers) {
      if (!server->has_equal_nics()) {
        node_.required("template").fail("needs NICs of one part in each server");
      }
      const Bandwidth port(server->nic_speed.bits_per_second() / spec_.planes / spec_.tors);
      spec_.host_links.push_back(
          cables_.link(std::min(port, spec_.leaf.speed), server->network_efficiency, flight_));
    }
    if (form_.is_fat_tree) {
      sizer.size_fat_tree(node_.required("k"));
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
    const auto tiers_node = node_.optional("tiers");
    const std::int64_t tiers = tiers_node ? tiers_node->as_integer(2, 3) : 0;
    const auto spine = sizer.needs_spines() ? node_.required("spine") : node_.optional("spine");
    if (sizer.needs_spines()) {
      spec_.spine = read_switch(context_, *spine);
    } else if (spine) {
      (void)context_.catalogue.network_switch(*spine);
    }
    const bool wants_core =
        sizer.needs_spines() && (tiers == 3 || (tiers == 0 && sizer.needs_cores()));
    const auto core = wants_core && tiers == 3 ? node_.required("core") : node_.optional("core");
    if (wants_core && core) {
      spec_.core = read_switch(context_, *core);
      sizer.size_three_tiers(*spine);
    } else {
      if (core) {
        (void)context_.catalogue.network_switch(*core);
      }
      skip(kCoreKeys);
      if (sizer.needs_spines()) {
        sizer.size_two_tiers(*spine);
      } else {
        skip(kSpineKeys);
      }
    }
    read_links();
  }

  template <typename Keys>
  void skip(const Keys& keys) const {
    for (const std::string_view key : keys) {
      if (const auto value = node_.optional(key)) {
        value->skip();
      }
    }
  }

  void read_links() {
    const auto spine_cable = node_.optional("spine_cable");
    const SimTime spine_flight = spine_cable ? cable_delay(*spine_cable) : flight_;
    const auto core_cable = node_.optional("core_cable");
    const SimTime core_flight = core_cable ? cable_delay(*core_cable) : spine_flight;
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
  const ConfigNode& node_;
  ClosForm form_;
  CableReader cables_;
  double efficiency_;  // The efficiency of the NICs that fill links above the leaves best.
  SimTime flight_;     // Time of flight through `cable`.
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

ClosSpec read_clos_spec(const FabricContext& context, const ClosForm& form) {
  return ClosReader(context, form).read();
}

std::unique_ptr<Fabric> read_clos(const FabricContext& context, const ClosForm& form) {
  RoutingOptions routing = read_routing(context.node);
  return std::make_unique<Clos>(std::move(routing), read_clos_spec(context, form));
}

}  // namespace trainyard
