// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric/grid.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>
#include <utility>

namespace trainyard {
namespace {

constexpr std::int64_t kMaxSwitchesOfGrid = 1'000'000;
constexpr Whole kDimension{1, 4096};
constexpr std::size_t kMaxDimensions = 6;
constexpr std::int64_t kMaxEndpoints = 4096;

std::vector<int> read_shape(const ConfigNode& node, const GridForm& form) {
  const std::vector<ConfigNode> items = node.items();
  const std::size_t max = form.has_one_dimension ? 1 : kMaxDimensions;
  if (items.empty() || items.size() > max) {
    node.fail(max == 1 ? "one dimension, as in [8]" : "one to six dimensions, as in [4, 4, 4]",
              fmt::format("{}", items.size()));
  }
  std::vector<int> shape;
  std::int64_t switches = 1;
  for (const ConfigNode& item : items) {
    shape.push_back(static_cast<int>(kDimension.value(item)));
    switches *= shape.back();
    if (switches > kMaxSwitchesOfGrid) {
      node.fail(fmt::format("at most {} switches in all", kMaxSwitchesOfGrid));
    }
  }
  return shape;
}

// A value for each dimension: a list, or one value for all.
template <typename Read>
auto for_dimensions(const ConfigNode& node, std::size_t dimensions, Read read) {
  std::vector<decltype(read(node))> values;
  if (!node.is_sequence()) {
    values.assign(dimensions, read(node));
    return values;
  }
  for (const ConfigNode& item : node.items()) {
    values.push_back(read(item));
  }
  if (values.size() != dimensions) {
    node.fail(fmt::format("{} values, one for each dimension", dimensions),
              fmt::format("{}", values.size()));
  }
  return values;
}

// Payload over line rate, of the first NICs that there are.
double efficiency(const FabricContext& context) {
  const auto server = std::ranges::find_if(
      context.servers, [](const ServerSpec* candidate) { return candidate->nics > 0; });
  return server == context.servers.end() ? 1.0 : (*server)->network_efficiency;
}

void read_switches(const FabricContext& context, GridSpec& spec) {
  const FabricKeys& keys = context.keys;
  const SimTime flight = keys.cable.value_or(SimTime());
  if (keys.link != nullptr) {
    spec.trunk = physical_link(*keys.link, context.parts).bundle(1);
    spec.trunk.latency += flight;
    return;
  }
  const CableReader cables(context);
  spec.part = use_switch(*keys.part, context.parts);
  spec.host_flight = keys.host_cable.value_or(flight);
  spec.trunk = cables.link(spec.part->speed, efficiency(context), flight);
}

void read_endpoints(const FabricContext& context, GridSpec& spec) {
  std::int64_t endpoints = 0;
  for (const ServerSpec* server : context.servers) {
    endpoints += spec.attaches_gpus ? server->gpus : server->nics;
  }
  const std::int64_t switches = spec.switches();
  if (context.keys.endpoints_per_switch) {
    spec.endpoints_per_switch = *context.keys.endpoints_per_switch;
  } else if (spec.part) {
    spec.endpoints_per_switch = static_cast<int>(
        std::min(kMaxEndpoints, std::max<std::int64_t>(1, (endpoints + switches - 1) / switches)));
  }
  const std::string_view what = spec.attaches_gpus ? "GPUs" : "NICs";
  if (!spec.part && spec.endpoints_per_switch != 1) {
    context.node()
        .required("endpoints_per_switch")
        .fail("a chip that routes itself is one endpoint");
  }
  if (endpoints > switches * spec.endpoints_per_switch) {
    context.nodes.fail(fmt::format(
        "at most {} {} fit {} switches of {}, found {}: lower nodes or enlarge fabric.shape",
        switches * spec.endpoints_per_switch, what, switches, spec.endpoints_per_switch,
        endpoints));
  }
}

void check_ports(const FabricContext& context, const GridSpec& spec) {
  int trunks = 0;
  for (std::size_t dimension = 0; dimension < spec.shape.size(); ++dimension) {
    trunks += spec.ports_of(dimension, spec.shape[dimension] / 2);
  }
  if (!spec.part) {
    const std::int64_t max =
        kMaxBandwidth.bits_per_second() / spec.trunk.bandwidth.bits_per_second();
    if (trunks > max) {
      context.node().required("shape").fail(
          fmt::format("a chip has {} links of {}, and at most {} are possible", trunks,
                      to_string(spec.trunk.bandwidth), max));
    }
    return;
  }
  const int ports = trunks + spec.endpoints_per_switch;
  if (ports > spec.part->ports) {
    context.node().required("switch").fail(
        fmt::format("{} has {} ports, and {} are needed: {} for endpoints, {} for other switches",
                    spec.part->name, spec.part->ports, ports, spec.endpoints_per_switch, trunks));
  }
}

class Grid final : public Fabric {
 public:
  Grid(RoutingOptions routing, const FabricContext& context, GridSpec spec)
      : Fabric(std::move(routing)), spec_(std::move(spec)) {
    for (const ServerSpec* server : context.servers) {
      enter_host_links(context, *server);
    }
  }

  void add_to(TopologyBuilder& builder, const std::vector<ServerNodes>& servers) override {
    std::vector<NodeId> nodes;
    for (std::uint32_t index = 0; index < spec_.switches(); ++index) {
      nodes.push_back(add_router(builder, index));
    }
    std::uint32_t endpoint = 0;
    for (const ServerNodes& server : servers) {
      for (const NodeId node : spec_.attaches_gpus ? server.gpus : server.nics) {
        const auto at = endpoint / static_cast<std::uint32_t>(spec_.endpoints_per_switch);
        builder.add_duplex_link(node, nodes[at],
                                spec_.part ? host_links_[endpoint] : chip_link(at));
        ++endpoint;
      }
    }
    for (std::uint32_t index = 0; index < nodes.size(); ++index) {
      join(builder, nodes, index);
    }
    FabricShape& shape = routing_.fabric;
    shape.first_switch = nodes.front();
    shape.switches = spec_.switches();
    shape.dimensions = spec_.shape;
    shape.wraps = spec_.wraps;
    shape.joins_all = spec_.joins_all;
  }

 private:
  void enter_host_links(const FabricContext& context, const ServerSpec& server) {
    if (!spec_.part) {
      return;
    }
    const CableReader cables(context);
    if (spec_.attaches_gpus) {
      host_links_.insert(host_links_.end(), static_cast<std::size_t>(server.gpus),
                         cables.link(spec_.part->speed, 1.0, spec_.host_flight));
      return;
    }
    cables.add_nic_links(server, *spec_.part, spec_.host_flight, host_links_);
  }

  // From a chip to its own router: no obstacle, as the two are one.
  [[nodiscard]] LinkSpec chip_link(std::uint32_t index) const {
    int lanes = 0;
    for (std::size_t dimension = 0; dimension < spec_.shape.size(); ++dimension) {
      lanes += spec_.ports_of(dimension, coordinate(index, dimension));
    }
    LinkSpec link = spec_.trunk;
    link.lanes = std::max(lanes, 1);
    link.bandwidth = link.bandwidth.scaled(link.lanes);
    link.latency = SimTime();
    return link;
  }

  NodeId add_router(TopologyBuilder& builder, std::uint32_t index) const {
    std::string name(spec_.part ? "sw" : "chip");
    for (std::size_t dimension = 0; dimension < spec_.shape.size(); ++dimension) {
      name += (dimension == 0 ? "" : ",") + std::to_string(coordinate(index, dimension));
    }
    if (spec_.part) {
      return add_switch(builder, *spec_.part, std::move(name));
    }
    return builder.add_node({.kind = NodeKind::Switch, .name = std::move(name)});
  }

  // Links to the neighbours that follow in each dimension.
  void join(TopologyBuilder& builder, const std::vector<NodeId>& nodes, std::uint32_t index) const {
    std::uint32_t stride = 1;
    for (std::size_t dimension = 0; dimension < spec_.shape.size(); ++dimension) {
      const int length = spec_.shape[dimension];
      const int from = coordinate(index, dimension);
      const int last = spec_.joins_all ? length - 1 : std::min(from + 1, length - 1);
      for (int to = from + 1; to <= last; ++to) {
        add_links(builder, nodes[index],
                  nodes[index + static_cast<std::uint32_t>(to - from) * stride], dimension);
      }
      if (spec_.wraps[dimension] && from == length - 1) {
        add_links(builder, nodes[index], nodes[index - static_cast<std::uint32_t>(from) * stride],
                  dimension);
      }
      stride *= static_cast<std::uint32_t>(length);
    }
  }

  // Cables are links of their own, of which a flow uses one; a chip spreads over its lanes.
  void add_links(TopologyBuilder& builder, NodeId from, NodeId to, std::size_t dimension) const {
    const int links = spec_.links[dimension];
    LinkSpec link = spec_.trunk;
    if (!spec_.part) {
      link.lanes = links;
      link.bandwidth = link.bandwidth.scaled(links);
    }
    for (int copy = 0; copy < (spec_.part ? links : 1); ++copy) {
      builder.add_duplex_link(from, to, link);
    }
  }

  [[nodiscard]] int coordinate(std::uint32_t index, std::size_t dimension) const {
    for (std::size_t lower = 0; lower < dimension; ++lower) {
      index /= static_cast<std::uint32_t>(spec_.shape[lower]);
    }
    return static_cast<int>(index % static_cast<std::uint32_t>(spec_.shape[dimension]));
  }

  GridSpec spec_;
  std::vector<LinkSpec> host_links_;  // One per endpoint; none for chips.
};

}  // namespace

std::uint32_t GridSpec::switches() const {
  std::uint32_t product = 1;
  for (const int length : shape) {
    product *= static_cast<std::uint32_t>(length);
  }
  return product;
}

int GridSpec::ports_of(std::size_t dimension, int coordinate) const {
  const int length = shape[dimension];
  if (joins_all) {
    return (length - 1) * links[dimension];
  }
  const int up = wraps[dimension] || coordinate + 1 < length ? 1 : 0;
  const int down = wraps[dimension] || coordinate > 0 ? 1 : 0;
  return (up + down) * links[dimension];
}

void grid_fields(Fields& fields, FabricKeys& keys, const GridForm& form) {
  const auto shape = [&](const ConfigNode& node) { return read_shape(node, form); };
  const auto links = [&](const ConfigNode& node) {
    return for_dimensions(node, keys.shape.size(), [](const ConfigNode& item) {
      return static_cast<int>(kGridLinks.first.value(item));
    });
  };
  const auto wraps = [&](const ConfigNode& node) {
    return for_dimensions(node, keys.shape.size(), Flag::value);
  };
  fields.required("shape", keys.shape, Via{List{kDimension}, shape},
                  "Switches of a grid in each dimension.");
  if (!fields.optional("links", keys.links, Via{kGridLinks, links}, "")) {
    keys.links.assign(keys.shape.size(), 1);
  }
  keys.wraps.assign(keys.shape.size(), form.wraps);
  fields.where(form.may_choose_wraps, [&] {
    fields.optional("wraps", keys.wraps, Via{Either{Flag{}, List{Flag{}}}, wraps},
                    "Whether dimensions of a torus close to rings: `true`.");
  });
  const bool has_link =
      fields.optional("link", keys.link,
                      link_named(keys.catalogue, LinkFamily::Ici,
                                 "a link of family ici, between chips that route themselves"),
                      "Part that joins chips that route themselves, instead of `switch`.");
  fields.check([&](const ConfigNode& node) {
    if (const auto part = node.optional("switch"); part && has_link) {
      part->fail("give either this or link, for chips that route themselves");
    }
    if (has_link && !keys.attaches_gpus) {
      node.required("link").fail("link is for chips that route themselves: it needs attach: gpu");
    }
  });
  fields.where(has_link, [&] { fields.optional("cable", keys.cable, kLength, ""); });
  fields.where(!has_link, [&] {
    fields.required("switch", keys.part, part_named(keys.catalogue, &Catalogue::network_switch),
                    "");
    fields.required("cable", keys.cable, kLength, "");
    fields.optional("host_cable", keys.host_cable, kLength, "");
  });
  fields.optional("endpoints_per_switch", keys.endpoints_per_switch, Whole{1, kMaxEndpoints}, "");
  add_channel_field(fields, keys);
}

std::unique_ptr<Fabric> read_grid(const FabricContext& context, const GridForm& form) {
  GridSpec spec;
  spec.joins_all = form.joins_all;
  spec.attaches_gpus = context.keys.attaches_gpus;
  spec.shape = context.keys.shape;
  spec.links = context.keys.links;
  spec.wraps = context.keys.wraps;
  for (std::size_t dimension = 0; dimension < spec.shape.size(); ++dimension) {
    spec.wraps[dimension] = spec.wraps[dimension] && spec.shape[dimension] > 2;
  }
  read_switches(context, spec);
  read_endpoints(context, spec);
  check_ports(context, spec);
  RoutingOptions routing = context.keys.routing;
  const bool any_wrap = std::ranges::find(spec.wraps, true) != spec.wraps.end();
  // A date line needs two, and Valiant's second half a set of its own
  // (topology/routing/grid_router.h).
  routing.fabric.virtual_channels = context.keys.virtual_channels.value_or(
      (any_wrap ? 2 : 1) * (traits(routing.policy).is_valiant ? 2 : 1));
  return std::make_unique<Grid>(std::move(routing), context, std::move(spec));
}

}  // namespace trainyard
