// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric/fabric.h"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "topology/fabric/clos.h"
#include "topology/fabric/dragonfly.h"
#include "topology/fabric/graph.h"
#include "topology/fabric/grid.h"
#include "topology/fabric/slim_fly.h"
#include "topology/routing/dragonfly_router.h"
#include "topology/routing/general_router.h"
#include "topology/routing/grid_router.h"
#include "topology/routing/up_down_router.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr std::int64_t kMostVirtualChannels = 8;

struct FabricTemplate {
  std::string_view name;  // Key `template`.
  std::unique_ptr<Fabric> (*read)(const FabricContext& context);
  MakeFabricRouter router;     // Knows its shape; states its dependencies for lint.
  bool attaches_gpus = false;  // May have `attach: gpu`.
  bool has_valiant = false;    // Its router knows switches or groups to go through.
};

// Templates that one reader serves differ in a form.
template <auto kRead, auto kForm>
std::unique_ptr<Fabric> read_as(const FabricContext& context) {
  return kRead(context, kForm);
}

// Ordered by name. What differs between templates beyond these columns is theirs alone: the rest of
// the program asks FabricShape and FabricRouter for traits.
constexpr auto kTemplates = std::to_array<FabricTemplate>({
    {.name = "clos", .read = read_as<read_clos, ClosForm{}>, .router = make_router<UpDownRouter>},
    {.name = "dragonfly",
     .read = read_as<read_dragonfly, false>,
     .router = make_router<DragonflyRouter>,
     .has_valiant = true},
    {.name = "dragonfly-plus",
     .read = read_as<read_dragonfly, true>,
     .router = make_router<DragonflyRouter>,
     .has_valiant = true},
    {.name = "fat-tree",
     .read = read_as<read_clos, ClosForm{.is_fat_tree = true}>,
     .router = make_router<UpDownRouter>},
    {.name = "full",
     .read = read_as<read_grid, GridForm{.has_one_dimension = true, .joins_all = true}>,
     .router = make_router<GridRouter>,
     .attaches_gpus = true,
     .has_valiant = true},
    {.name = "graph",
     .read = read_graph,
     .router = make_router<GeneralRouter>,
     .attaches_gpus = true},
    {.name = "hyperx",
     .read = read_as<read_grid, GridForm{.joins_all = true}>,
     .router = make_router<GridRouter>,
     .attaches_gpus = true,
     .has_valiant = true},
    {.name = "mesh",
     .read = read_as<read_grid, GridForm{}>,
     .router = make_router<GridRouter>,
     .attaches_gpus = true,
     .has_valiant = true},
    {.name = "rail-optimised",
     .read = read_as<read_clos, ClosForm{.rails = true}>,
     .router = make_router<UpDownRouter>},
    {.name = "ring",
     .read = read_as<read_grid, GridForm{.has_one_dimension = true, .wraps = true}>,
     .router = make_router<GridRouter>,
     .attaches_gpus = true,
     .has_valiant = true},
    {.name = "single-switch",
     .read = read_as<read_clos, ClosForm{.is_single = true}>,
     .router = make_router<UpDownRouter>},
    {.name = "slim-fly", .read = read_slim_fly, .router = make_router<GeneralRouter>},
    {.name = "torus",
     .read = read_as<read_grid, GridForm{.wraps = true, .may_choose_wraps = true}>,
     .router = make_router<GridRouter>,
     .attaches_gpus = true,
     .has_valiant = true},
});

template <typename Rows>
constexpr auto names_of(const Rows& rows) {
  std::array<std::string_view, std::tuple_size_v<Rows>> names;
  std::ranges::transform(rows, names.begin(), [](const auto& row) { return row.name; });
  return names;
}
constexpr auto kTemplateNames = names_of(kTemplates);
constexpr auto kPolicyNames = names_of(kRoutingPolicies);

const FabricTemplate& template_of(const ConfigNode& node) {
  return kTemplates[node.required("template").as_choice(kTemplateNames)];
}

constexpr std::array<std::string_view, 2> kAttached = {"nic", "gpu"};

// RS(544,514) at 100 Gb/s a lane takes about 100 ns at both ends together; the signal processors of
// optical modules about as much again (IEEE 802.3dj contributions).
Sourced<SimTime> fec_latency() {
  return {100_ns, Evidence::Estimate,
          "RS(544,514) at 100 Gb/s a lane, after IEEE 802.3dj contributions"};
}
Sourced<SimTime> optics_latency() {
  return {100_ns, Evidence::Estimate,
          "signal processors of optical modules, after IEEE 802.3dj contributions"};
}

}  // namespace

std::unique_ptr<Fabric> read_fabric(const FabricContext& context) {
  const FabricTemplate& row = template_of(context.node);
  auto fabric = row.read(context);
  if (traits(fabric->routing().policy).is_valiant && !row.has_valiant) {
    context.node.required("routing").fail(
        "a policy of this template: valiant is for tori, meshes, HyperX and dragonflies",
        "\"valiant\"");
  }
  return fabric;
}

bool attaches_gpus(const ConfigNode& node) {
  const auto attach = node.optional("attach");
  if (!attach || attach->as_choice(kAttached) == 0) {
    return false;
  }
  if (!template_of(node).attaches_gpus) {
    attach->fail("nic, as this template joins NICs only", attach->found());
  }
  return true;
}

RoutingOptions read_routing(const ConfigNode& node) {
  RoutingOptions routing;
  routing.fabric.router = template_of(node).router;
  if (const auto policy = node.optional("routing")) {
    routing.policy = kRoutingPolicies[policy->as_choice(kPolicyNames)].policy;
  }
  if (const auto seed = node.optional("routing_seed")) {
    routing.seed = static_cast<std::uint64_t>(seed->as_integer(0, std::int64_t{1} << 62));
  }
  return routing;
}

int read_virtual_channels(const ConfigNode& node, int needed) {
  const auto channels = node.optional("virtual_channels");
  return channels ? static_cast<int>(channels->as_integer(1, kMostVirtualChannels)) : needed;
}

SwitchSpec read_switch(const FabricContext& context, const ConfigNode& name) {
  const SwitchModel& model = context.catalogue.network_switch(name);
  PartLog& parts = context.parts;
  return {.name = model.name,
          .part = parts.part(model.name),
          .ports = parts.use(model.name, "ports", model.ports),
          .speed = parts.use(model.name, "speed", model.speed),
          .latency = parts.use(model.name, "latency", model.latency),
          .in_network_reduction =
              model.in_network_reduction &&
              parts.use(model.name, "in_network_reduction", *model.in_network_reduction)};
}

NodeId add_switch(TopologyBuilder& builder, const SwitchSpec& spec, std::string name) {
  return builder.add_node({.kind = NodeKind::Switch,
                           .name = std::move(name),
                           .latency = spec.latency,
                           .server = std::nullopt,
                           .part = spec.part,
                           .ports = static_cast<std::uint16_t>(spec.ports),
                           .in_network_reduction = spec.in_network_reduction});
}

CableReader::CableReader(const FabricContext& context)
    : latency_(context.parts.use("network link", "FEC latency", fec_latency())) {
  const auto optics = context.node.optional("optics");
  if (optics && optics->as_bool()) {
    latency_ += context.parts.use("network link", "optics latency", optics_latency());
  }
}

LinkSpec CableReader::link(Bandwidth line_rate, double efficiency, SimTime flight) const {
  return {.kind = LinkKind::Network,
          .bandwidth = line_rate.scaled(efficiency),
          .latency = flight + latency_};
}

void CableReader::add_nic_links(const ServerSpec& server, const SwitchSpec& part, SimTime flight,
                                std::vector<LinkSpec>& links) const {
  for (const NicSpec& nic : server.nic_specs) {
    links.push_back(link(std::min(nic.speed(), part.speed), nic.efficiency, flight));
  }
}

double first_efficiency(const FabricContext& context) {
  for (const ServerSpec* server : context.servers) {
    if (!server->nic_specs.empty()) {
      return server->nic_specs.front().efficiency;
    }
  }
  return 1.0;
}

}  // namespace trainyard
