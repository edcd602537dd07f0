// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric/grid.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>
#include <utility>

namespace trainyard {
namespace {

constexpr std::int64_t kMostSwitchesOfGrid = 1'000'000;
constexpr std::int64_t kMostInDimension = 4096;
constexpr std::size_t kMostDimensions = 6;
constexpr std::int64_t kMostEndpoints = 4096;

std::vector<int> read_shape(const ConfigNode& node, const GridForm& form) {
  const std::vector<ConfigNode> items = node.items();
  const std::size_t most = form.has_one_dimension ? 1 : kMostDimensions;
  if (items.empty() || items.size() > most) {
    node.fail(most == 1 ? "one dimension, as in [8]" : "one to six dimensions, as in [4, 4, 4]",
              fmt::format("{}", items.size()));
  }
  std::vector<int> shape;
  std::int64_t switches = 1;
  for (const ConfigNode& item : items) {
    shape.push_back(static_cast<int>(item.as_integer(1, kMostInDimension)));
    switches *= shape.back();
    if (switches > kMostSwitchesOfGrid) {
      node.fail(fmt::format("at most {} switches in all", kMostSwitchesOfGrid));
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

void read_wraps(const FabricContext& context, const GridForm& form, GridSpec& spec) {
  spec.wraps.assign(spec.shape.size(), form.wraps);
  if (form.may_choose_wraps) {
    if (const auto given = context.node.optional("wraps")) {
      spec.wraps = for_dimensions(*given, spec.shape.size(),
                                  [](const ConfigNode& item) { return item.as_bool(); });
    }
  }
  for (std::size_t dimension = 0; dimension < spec.shape.size(); ++dimension) {
    spec.wraps[dimension] = spec.wraps[dimension] && spec.shape[dimension] > 2;
  }
}

// Payload over line rate, of the first NICs that there are.
double efficiency(const FabricContext& context) {
  const auto server = std::ranges::find_if(
      context.servers, [](const ServerSpec* candidate) { return candidate->nics > 0; });
  return server == context.servers.end() ? 1.0 : (*server)->network_efficiency;
}

void read_switches(const FabricContext& context, GridSpec& spec) {
  const ConfigNode& node = context.node;
  if (const auto link = node.optional("link")) {
    const LinkModel& model = context.catalogue.link(*link);
    if (model.family != LinkFamily::Ici) {
      link->fail("a link of family ici, between chips that route themselves", link->found());
    }
    if (const auto part = node.optional("switch")) {
      part->fail("give either this or link, for chips that route themselves");
    }
    if (!spec.attaches_gpus) {
      link->fail("link is for chips that route themselves: it needs attach: gpu");
    }
    spec.trunk = physical_link(model, context.parts).bundle(1);
    if (const auto cable = node.optional("cable")) {
      spec.trunk.latency += cable_delay(*cable);
    }
    return;
  }
  const CableReader cables(context);
  spec.part = read_switch(context, node.required("switch"));
  const SimTime flight = cable_delay(node.required("cable"));
  const auto host_cable = node.optional("host_cable");
  spec.host_flight = host_cable ? cable_delay(*host_cable) : flight;
  spec.trunk = cables.link(spec.part->speed, efficiency(context), flight);
}

void read_endpoints(const FabricContext& context, GridSpec& spec) {
  std::int64_t endpoints = 0;
  for (const ServerSpec* server : context.servers) {
    endpoints += spec.attaches_gpus ? server->gpus : server->nics;
  }
  const std::int64_t switches = spec.switches();
  if (const auto given = context.node.optional("endpoints_per_switch")) {
    spec.endpoints_per_switch = static_cast<int>(given->as_integer(1, kMostEndpoints));
  } else if (spec.part) {
    spec.endpoints_per_switch = static_cast<int>(
        std::min(kMostEndpoints, std::max<std::int64_t>(1, (endpoints + switches - 1) / switches)));
  }
  const std::string_view what = spec.attaches_gpus ? "GPUs" : "NICs";
  if (!spec.part && spec.endpoints_per_switch != 1) {
    context.node.required("endpoints_per_switch").fail("a chip that routes itself is one endpoint");
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
    const std::int64_t most =
        kMaxBandwidth.bits_per_second() / spec.trunk.bandwidth.bits_per_second();
    if (trunks > most) {
      context.node.required("shape").fail(
          fmt::format("a chip has {} links of {}, and at most {} are possible", trunks,
                      to_string(spec.trunk.bandwidth), most));
    }
    return;
  }
  const int ports = trunks + spec.endpoints_per_switch;
  if (ports > spec.part->ports) {
    context.node.required("switch").fail(
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

GridSpec read_grid_spec(const FabricContext& context, const GridForm& form) {
  GridSpec spec;
  spec.joins_all = form.joins_all;
  spec.attaches_gpus = attaches_gpus(context.node);
  spec.shape = read_shape(context.node.required("shape"), form);
  spec.links.assign(spec.shape.size(), 1);
  if (const auto links = context.node.optional("links")) {
    spec.links = for_dimensions(*links, spec.shape.size(), [](const ConfigNode& item) {
      return static_cast<int>(item.as_integer(1, kMostParallelCables));
    });
  }
  read_wraps(context, form, spec);
  read_switches(context, spec);
  read_endpoints(context, spec);
  check_ports(context, spec);
  return spec;
}

std::unique_ptr<Fabric> read_grid(const FabricContext& context, const GridForm& form) {
  RoutingOptions routing = read_routing(context.node);
  GridSpec spec = read_grid_spec(context, form);
  const bool any_wrap = std::ranges::find(spec.wraps, true) != spec.wraps.end();
  // A date line needs two, and Valiant's second half a set of its own
  // (topology/routing/grid_router.h).
  routing.fabric.virtual_channels = read_virtual_channels(
      context.node, (any_wrap ? 2 : 1) * (traits(routing.policy).is_valiant ? 2 : 1));
  return std::make_unique<Grid>(std::move(routing), context, std::move(spec));
}

}  // namespace trainyard
