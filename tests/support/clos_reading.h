// SPDX-License-Identifier: Apache-2.0
// Clos fabrics from text: the numbers that a template finds, and the graph that it builds.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/shipped.h"
#include "topology/fabric/clos.h"

namespace trainyard {

[[nodiscard]] inline ServerSpec servers_of(int nics, std::int64_t nic_gigabits = 400,
                                           int nic_ports = 1) {
  ServerSpec server;
  server.nics = nics;
  server.nic_speed = gigabits_per_second(nic_gigabits);
  server.nic_ports = nic_ports;
  server.network_efficiency = 0.96;
  return server;
}

// A fabric for these servers while it is read. `fabric` lacks only the cable.
class ClosReading {
 public:
  ClosReading(std::vector<ServerSpec> servers, const std::string& fabric)
      : servers_(std::move(servers)),
        document_(ConfigDocument::parse("nodes: " + std::to_string(servers_.size()) +
                                            "\nfabric: {cable: 10 m, " + fabric + "}\n",
                                        "fabric.yaml")),
        nodes_(document_.root().required("nodes")) {
    read_fields(document_.root().required("fabric"), keys_, fabric_fields);
    document_.finish();
    for (const ServerSpec& server : servers_) {
      pointers_.push_back(&server);
    }
  }
  ClosReading(int nodes, const ServerSpec& server, const std::string& fabric)
      : ClosReading(std::vector<ServerSpec>(static_cast<std::size_t>(nodes), server), fabric) {}

  ClosSpec spec() {
    static constexpr std::array<std::string_view, 4> templates = {"single-switch", "clos",
                                                                  "rail-optimised", "fat-tree"};
    static constexpr std::array<ClosForm, 4> forms = {
        {{.is_single = true}, {}, {.rails = true}, {.is_fat_tree = true}}};
    const ClosForm form = forms[keys_.node->required("template").as_choice(templates)];
    return read_clos_spec(context(), form);
  }
  std::unique_ptr<Fabric> fabric() { return read_fabric(context()); }

 private:
  FabricContext context() {
    return {.keys = keys_, .nodes = nodes_, .servers = pointers_, .parts = parts_};
  }

  std::vector<ServerSpec> servers_;
  std::vector<const ServerSpec*> pointers_;
  ConfigDocument document_;
  ConfigNode nodes_;
  FabricKeys keys_{.catalogue = &open_catalogue()};
  PartLog parts_;
};

[[nodiscard]] inline ClosSpec read_clos(int nodes, const ServerSpec& server,
                                        const std::string& fabric) {
  return ClosReading(nodes, server, fabric).spec();
}

struct BuiltClos {
  Topology topology;
  RoutingOptions routing;
  std::vector<ServerNodes> servers;
};

// The fabric with NICs and nothing else below it.
[[nodiscard]] inline BuiltClos build_clos(const std::vector<ServerSpec>& specs,
                                          const std::string& text) {
  TopologyBuilder builder;
  std::vector<ServerNodes> servers(specs.size());
  for (std::size_t server = 0; server < specs.size(); ++server) {
    const ServerId id = builder.add_server();
    for (int nic = 0; nic < specs[server].nics; ++nic) {
      servers[server].nics.push_back(
          builder.add_node({.kind = NodeKind::Nic, .name = "nic", .server = id}));
    }
  }
  const auto fabric = ClosReading(specs, text).fabric();
  fabric->add_to(builder, servers);
  return {.topology = std::move(builder).build(),
          .routing = fabric->routing(),
          .servers = std::move(servers)};
}

[[nodiscard]] inline BuiltClos build_clos(int nodes, const ServerSpec& server,
                                          const std::string& text) {
  return build_clos(std::vector<ServerSpec>(static_cast<std::size_t>(nodes), server), text);
}

}  // namespace trainyard
