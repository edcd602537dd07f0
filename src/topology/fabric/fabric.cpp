// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric/fabric.h"

#include <algorithm>
#include <array>
#include <string>
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

struct FabricTemplate {
  std::string_view name;  // Key `template`.
  void (*fields)(Fields& fields, FabricKeys& keys);
  std::unique_ptr<Fabric> (*read)(const FabricContext& context);
  MakeFabricRouter router;     // Knows its shape; states its dependencies for lint.
  bool attaches_gpus = false;  // May have `attach: gpu`.
  bool has_valiant = false;    // Its router knows switches or groups to go through.
};

// Templates that one reader serves differ in a form.
template <ClosForm kForm>
constexpr FabricTemplate tiers(std::string_view name) {
  return {.name = name,
          .fields = [](Fields& fields, FabricKeys& keys) { clos_fields(fields, keys, kForm); },
          .read = [](const FabricContext& context) { return read_clos(context, kForm); },
          .router = make_router<UpDownRouter>};
}
template <GridForm kForm>
constexpr FabricTemplate grid(std::string_view name) {
  return {.name = name,
          .fields = [](Fields& fields, FabricKeys& keys) { grid_fields(fields, keys, kForm); },
          .read = [](const FabricContext& context) { return read_grid(context, kForm); },
          .router = make_router<GridRouter>,
          .attaches_gpus = true,
          .has_valiant = true};
}
template <bool kHasSpines>
constexpr FabricTemplate dragonfly(std::string_view name) {
  return {.name = name,
          .fields = [](Fields& fields,
                       FabricKeys& keys) { dragonfly_fields(fields, keys, kHasSpines); },
          .read = [](const FabricContext& context) { return read_dragonfly(context, kHasSpines); },
          .router = make_router<DragonflyRouter>,
          .has_valiant = true};
}

// Ordered by name. What differs between templates beyond these columns is theirs alone: the rest of
// the program asks FabricShape and FabricRouter for traits.
constexpr auto kTemplates = std::to_array<FabricTemplate>({
    tiers<ClosForm{}>("clos"),
    dragonfly<false>("dragonfly"),
    dragonfly<true>("dragonfly-plus"),
    tiers<ClosForm{.is_fat_tree = true}>("fat-tree"),
    grid<GridForm{.has_one_dimension = true, .joins_all = true}>("full"),
    {.name = "graph",
     .fields = graph_fields,
     .read = read_graph,
     .router = make_router<GeneralRouter>,
     .attaches_gpus = true},
    grid<GridForm{.joins_all = true}>("hyperx"),
    grid<GridForm{}>("mesh"),
    tiers<ClosForm{.rails = true}>("rail-optimised"),
    grid<GridForm{.has_one_dimension = true, .wraps = true}>("ring"),
    tiers<ClosForm{.is_single = true}>("single-switch"),
    {.name = "slim-fly",
     .fields = slim_fly_fields,
     .read = read_slim_fly,
     .router = make_router<GeneralRouter>},
    grid<GridForm{.wraps = true, .may_choose_wraps = true}>("torus"),
});

constexpr auto kTemplateNames = row_names(kTemplates);
constexpr auto kPolicyNames = row_names(kRoutingPolicies);

constexpr std::array<std::string_view, 2> kAttached = {"nic", "gpu"};

// The signal processors of optical modules take about as long as error correction (IEEE 802.3dj
// contributions).
Sourced<SimTime> fec_latency() {
  return {kFecLatency, Evidence::Estimate,
          "RS(544,514) at 100 Gb/s a lane, after IEEE 802.3dj contributions"};
}
Sourced<SimTime> optics_latency() {
  return {100_ns, Evidence::Estimate,
          "signal processors of optical modules, after IEEE 802.3dj contributions"};
}

// Payload over line rate of the first NIC, which links between switches have too; 1 without NICs.
double first_efficiency(const FabricContext& context) {
  for (const ServerSpec* server : context.servers) {
    if (!server->nic_specs.empty()) {
      return server->nic_specs.front().efficiency;
    }
  }
  return 1.0;
}

}  // namespace

void fabric_fields(Fields& fields, FabricKeys& keys) {
  fields.check([&](const ConfigNode& node) { keys.node = node; });
  fields.required("template", keys.layout, Choice{kTemplateNames}, "Form of the fabric.");
  const FabricTemplate& row = kTemplates[keys.layout];
  keys.routing.fabric.router = row.router;
  fields.optional("attach", keys.attaches_gpus, Choice{kAttached},
                  "What hangs off switches of grids and graphs.");
  fields.check([&](const ConfigNode& node) {
    if (keys.attaches_gpus && !row.attaches_gpus) {
      const ConfigNode attach = node.required("attach");
      attach.fail("nic, as this template joins NICs only", attach.found());
    }
  });
  fields.optional("routing", keys.routing.policy, Choice{kPolicyNames}, "How paths are chosen.");
  fields.optional("routing_seed", keys.routing.seed, Whole{0, std::int64_t{1} << 62},
                  "Seed of the ECMP hash: 1.");
  for (const FabricTemplate& one : kTemplates) {
    fields.where(&one == &row, [&] { one.fields(fields, keys); });
  }
  // The links of a graph are not those of a grid, and describe both.
  fields.where(false, [&] { graph_fields(fields, keys); });
  fields.where(keys.link == nullptr, [&] {
    fields.optional("optics", keys.has_optics, Flag{},
                    "Optical modules with signal processors, 100 ns a link more.");
  });
}

void add_channel_field(Fields& fields, FabricKeys& keys) {
  fields.optional("virtual_channels", keys.virtual_channels, Whole{1, 8},
                  "What a fabric without tiers has: what its routes need.");
}

void add_group_fields(Fields& fields, FabricKeys& keys) {
  fields.required("switch", keys.part, part_named(keys.catalogue, &Catalogue::network_switch),
                  "Part, without tiers and of `fat-tree`.");
  fields.required("local_cable", keys.cable, kLength, "Length in a group or rack.");
  fields.required("global_cable", keys.global_cable, kLength, "Length between groups or racks.");
  fields.optional("host_cable", keys.host_cable, kLength,
                  "Length to endpoints: that between switches.");
  add_channel_field(fields, keys);
}

std::unique_ptr<Fabric> read_fabric(const FabricContext& context) {
  const FabricTemplate& row = kTemplates[context.keys.layout];
  auto fabric = row.read(context);
  if (traits(fabric->routing().policy).is_valiant && !row.has_valiant) {
    context.node().required("routing").fail(
        "a policy of this template: valiant is for tori, meshes, HyperX and dragonflies",
        "\"valiant\"");
  }
  return fabric;
}

SwitchSpec use_switch(const SwitchModel& model, PartLog& parts) {
  return {.name = model.name,
          .part = parts.part(model.name),
          .ports = parts.use(model.name, "ports", model.ports),
          .speed = parts.use(model.name, "speed", model.speed),
          .latency = parts.use(model.name, "latency", model.latency),
          .buffer = model.buffer ? model.buffer->value : Bytes(0),
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
                           .buffer = spec.buffer,
                           .in_network_reduction = spec.in_network_reduction});
}

CableReader::CableReader(const FabricContext& context)
    : latency_(context.parts.use("network link", "FEC latency", fec_latency())) {
  if (context.keys.has_optics) {
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

GroupLinks read_group_links(const FabricContext& context) {
  const FabricKeys& keys = context.keys;
  const CableReader cables(context);
  GroupLinks links;
  links.part = use_switch(*keys.part, context.parts);
  for (const ServerSpec* server : context.servers) {
    cables.add_nic_links(*server, links.part, keys.host_cable.value_or(*keys.cable),
                         links.host_links);
  }
  const double efficiency = first_efficiency(context);
  links.local_link = cables.link(links.part.speed, efficiency, *keys.cable);
  links.global_link = cables.link(links.part.speed, efficiency, keys.global_cable);
  return links;
}

}  // namespace trainyard
