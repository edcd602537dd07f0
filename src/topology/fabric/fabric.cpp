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

namespace trainyard {
namespace {

using namespace literals;

using ReadTemplate = std::unique_ptr<Fabric> (*)(const FabricContext&);

constexpr auto kTemplates = std::to_array<std::string_view>({
    "clos",
    "dragonfly",
    "dragonfly-plus",
    "fat-tree",
    "full",
    "graph",
    "hyperx",
    "mesh",
    "rail-optimised",
    "ring",
    "single-switch",
    "torus",
});
constexpr auto kReaders = std::to_array<ReadTemplate>({
    read_clos,
    read_dragonfly,
    read_dragonfly_plus,
    read_fat_tree,
    read_full,
    read_graph,
    read_hyperx,
    read_mesh,
    read_rail_optimised,
    read_ring,
    read_single_switch,
    read_torus,
});
static_assert(kTemplates.size() == kReaders.size());
constexpr std::array<std::string_view, 6> kAttachesGpus = {"torus",  "mesh", "ring",
                                                           "hyperx", "full", "graph"};

constexpr std::array<std::string_view, 5> kPolicies = {"ecmp", "static", "valiant", "adaptive",
                                                       "spray"};
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
  auto fabric = kReaders[context.node.required("template").as_choice(kTemplates)](context);
  const RoutingOptions& routing = fabric->routing();
  const bool has_valiant =
      routing.fabric.kind == FabricKind::Grid || routing.fabric.kind == FabricKind::Dragonfly;
  if (routing.policy == RoutingPolicy::Valiant && !has_valiant) {
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
  const std::size_t chosen = node.required("template").as_choice(kTemplates);
  if (std::ranges::find(kAttachesGpus, kTemplates[chosen]) == kAttachesGpus.end()) {
    attach->fail("nic, as this template joins NICs only", attach->found());
  }
  return true;
}

RoutingOptions read_routing(const ConfigNode& node) {
  RoutingOptions routing;
  if (const auto policy = node.optional("routing")) {
    routing.policy = static_cast<RoutingPolicy>(policy->as_choice(kPolicies));
  }
  if (const auto seed = node.optional("routing_seed")) {
    routing.seed = static_cast<std::uint64_t>(seed->as_integer(0, std::int64_t{1} << 62));
  }
  return routing;
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

}  // namespace trainyard
