// SPDX-License-Identifier: Apache-2.0
// Reads the top of a cluster file and puts servers and fabric together (docs/clusters.md).
#include "topology/cluster.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "topology/fabric.h"
#include "topology/parts.h"
#include "topology/server.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMostServers = 1'000'000;
// About 1 GB of memory.
constexpr std::int64_t kMostDevices = 2'000'000;

void apply_overrides(ConfigDocument& document, const ClusterOverrides& overrides) {
  for (const std::string& setting : overrides.settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw ConfigError(fmt::format("--set: expected key.path=value, found \"{}\"", setting));
    }
    document.set(setting.substr(0, equals), setting.substr(equals + 1));
  }
  if (overrides.nodes) {
    const std::string nodes = std::to_string(*overrides.nodes);
    document.set("nodes", nodes, "--nodes " + nodes);
  }
}

void check_size(const ConfigNode& nodes, int servers, const ServerSpec& server) {
  const std::int64_t per_server = server.devices();
  if (servers * per_server > kMostDevices) {
    nodes.fail(
        fmt::format("at most {} devices, found {} servers of {} (GPUs, NICs, PCIe switches, "
                    "CPUs and their memories)",
                    kMostDevices, servers, per_server));
  }
}

int used_gpus(const ConfigNode& server, int gpus_of_server, const ClusterOverrides& overrides) {
  const int used = overrides.gpus_per_node.value_or(gpus_of_server);
  if (used < 1 || used > gpus_of_server) {
    const auto gpus = server.optional("gpus");
    (gpus ? *gpus : server.required("tree"))
        .fail(fmt::format("--gpus-per-node: expected 1 to {}, the GPUs of a server, found {}",
                          gpus_of_server, used));
  }
  return used;
}

// The fabric, if there is one; an error if servers need one and cannot have it.
std::unique_ptr<Fabric> read_network(const ConfigNode& root,
                                     std::span<const ServerSpec* const> servers,
                                     const Catalogue& catalogue, PartLog& parts) {
  const ConfigNode nodes = root.required("nodes");
  const auto fabric = root.optional("fabric");
  const bool any_nic =
      std::ranges::any_of(servers, [](const ServerSpec* server) { return server->nics > 0; });
  if (fabric && (attaches_gpus(*fabric) || any_nic)) {
    return read_fabric({.node = *fabric,
                        .nodes = nodes,
                        .servers = servers,
                        .catalogue = catalogue,
                        .parts = parts});
  }
  if (servers.size() > 1) {
    nodes.fail(fmt::format("{} servers cannot reach each other: {}", servers.size(),
                           any_nic ? "there is no fabric" : "server.nics is 0"));
  }
  if (fabric) {
    fabric->fail("there is nothing to connect: server.nics is 0");
  }
  return nullptr;
}

}  // namespace

Cluster build_cluster(ConfigDocument& document, const Catalogue& catalogue,
                      const ClusterOverrides& overrides) {
  apply_overrides(document, overrides);
  const ConfigNode root = document.root();
  const std::string name = root.required("name").as_string();
  root.required("source").skip();
  const int nodes = static_cast<int>(root.required("nodes").as_integer(1, kMostServers));
  const ConfigNode server_node = root.required("server");
  PartLog parts;
  const ServerSpec server = read_server(server_node, catalogue, parts);
  check_size(root.required("nodes"), nodes, server);
  const int gpus_per_node = used_gpus(server_node, server.gpus, overrides);
  const std::vector<const ServerSpec*> specs(static_cast<std::size_t>(nodes), &server);
  const auto fabric = read_network(root, specs, catalogue, parts);
  const bool has_nics = !fabric || !attaches_gpus(root.required("fabric"));
  document.finish();

  TopologyBuilder builder;
  std::vector<ServerNodes> servers;
  std::vector<NodeId> gpus;
  for (int index = 0; index < nodes; ++index) {
    servers.push_back(add_server(builder, server));
    const std::vector<NodeId>& own = servers.back().gpus;
    gpus.insert(gpus.end(), own.begin(), own.begin() + gpus_per_node);
  }
  if (fabric) {
    fabric->add_to(builder, servers);
  }
  for (ServerNodes& nodes_of_server : servers) {
    add_memory(builder, server, nodes_of_server);
  }
  builder.set_parts(parts.names());
  return {.name = name,
          .topology = std::move(builder).build(),
          .routing = fabric ? fabric->routing() : RoutingOptions{},
          .nodes = nodes,
          .gpus_per_node = gpus_per_node,
          .server_gpus = std::vector<int>(static_cast<std::size_t>(nodes), gpus_per_node),
          .gpus = std::move(gpus),
          .nics_per_node = has_nics ? server.nics : 0,
          .estimates = parts.lines(),
          .warnings = fabric ? fabric->warnings() : std::vector<std::string>{}};
}

Cluster load_cluster(const std::filesystem::path& file, const Catalogue& catalogue,
                     const ClusterOverrides& overrides) {
  ConfigDocument document = ConfigDocument::load(file);
  return build_cluster(document, catalogue, overrides);
}

}  // namespace trainyard
