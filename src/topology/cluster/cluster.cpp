// SPDX-License-Identifier: Apache-2.0
// Reads the top of a cluster file and puts servers and fabric together (docs/inputs/clusters.md).
#include "topology/cluster/cluster.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>

#include "sim/check.h"
#include "topology/cluster/cluster_document.h"
#include "topology/cluster/cluster_keys.h"
#include "topology/cluster/faults.h"
#include "topology/cluster/reach.h"
#include "topology/fabric/fabric.h"
#include "topology/server/parts.h"
#include "topology/server/server.h"

namespace trainyard {
namespace {

// About 1 GB of memory.
constexpr std::int64_t kMaxDevices = 2'000'000;

// Servers that are alike, as one entry of `servers` or the whole cluster.
struct ServerGroup {
  ServerSpec spec;
  int count = 0;
  int used_gpus = 0;  // GPUs in use of each server.
};

// Servers that are named instead of described (configs/servers).
void compose_servers(ConfigDocument& document, const Catalogue& catalogue) {
  const std::filesystem::path folder = catalogue.folder().parent_path() / "servers";
  const ConfigNode root = document.root();
  if (const auto server = root.optional("server")) {
    document.compose(*server, folder);
  }
  const auto groups = root.optional("servers");
  if (!groups || !groups->is_sequence()) {
    return;
  }
  for (const ConfigNode& group : groups->items()) {
    if (!group.is_map()) {
      continue;  // An error when it is read.
    }
    if (const auto server = group.optional("server")) {
      document.compose(*server, folder);
    }
  }
}

// Whether a setting means this key of `server`.
bool is_device(std::string_view key) {
  return key == "gpu" || key == "nic" || key == "cpu";
}

void apply_overrides(ConfigDocument& document, const Catalogue& catalogue,
                     const ClusterOverrides& overrides) {
  compose_servers(document, catalogue);
  for (const std::string& setting : overrides.settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw ConfigError(fmt::format("--set: expected key.path=value, found \"{}\"", setting));
    }
    if (overrides.nodes && setting.substr(0, equals) == "nodes") {
      throw ConfigError(
          "--set nodes: expected the number of nodes once, found it in --nodes, --gpus or a log as "
          "well");
    }
    const std::string path = setting.substr(0, equals);
    const bool is_of_device = is_device(path.substr(0, path.find('.')));
    document.set(is_of_device ? "server." + path : path, setting.substr(equals + 1));
    compose_servers(document, catalogue);
  }
  if (overrides.nodes) {
    const std::string nodes = std::to_string(*overrides.nodes);
    if (document.root().optional("servers")) {
      throw ConfigError(
          fmt::format("--nodes {}: the cluster lists several kinds of servers; give "
                      "--set servers.0.nodes={} for the first",
                      nodes, nodes));
    }
    document.set("nodes", nodes, "--nodes " + nodes);
  }
}

void check_size(const ConfigNode& nodes, const std::vector<ServerGroup>& groups) {
  std::int64_t servers = 0;
  std::int64_t devices = 0;
  for (const ServerGroup& group : groups) {
    servers += group.count;
    devices += group.count * group.spec.devices();
  }
  if (devices <= kMaxDevices && servers <= kMaxServers) {
    return;
  }
  constexpr std::string_view kCounted = "(GPUs, NICs, PCIe switches, CPUs and their memories)";
  nodes.fail(groups.size() == 1
                 ? fmt::format("at most {} devices, found {} servers of {} {}", kMaxDevices,
                               servers, groups[0].spec.devices(), kCounted)
                 : fmt::format("at most {} devices, found {} in {} servers {}", kMaxDevices,
                               devices, servers, kCounted));
}

// --gpus-per-node cuts each server to as many GPUs, if it has more.
void use_gpus(const ClusterKeys& keys, std::vector<ServerGroup>& groups,
              const ClusterOverrides& overrides) {
  int max = 0;
  for (const ServerGroup& group : groups) {
    max = std::max(max, group.spec.gpus);
  }
  const int used = overrides.gpus_per_node.value_or(max);
  if (used < 1 || used > max) {
    const ConfigNode& server = *keys.groups[0].server.node;
    const ConfigNode place = keys.size->is_sequence()     ? *keys.size
                             : keys.groups[0].server.gpus ? server.required("gpus")
                                                          : server.required("tree");
    place.fail(fmt::format("--gpus-per-node: expected 1 to {}, the GPUs of {} server, found {}",
                           max, groups.size() == 1 ? "a" : "the largest", used));
  }
  for (ServerGroup& group : groups) {
    group.used_gpus = std::min(used, group.spec.gpus);
  }
}

// Returns whether one NVLink domain holds all servers.
bool is_one_domain(const std::vector<ServerGroup>& groups) {
  return groups.size() == 1 && groups[0].spec.nvswitch.servers >= groups[0].count;
}

// Checks whether every server has a way into the fabric.
void check_nics(const ClusterKeys& keys, const std::vector<ServerGroup>& groups) {
  for (std::size_t index = 0; index < groups.size(); ++index) {
    if (groups[index].spec.nics == 0) {
      keys.groups[index].node->fail("servers without NICs cannot reach the others");
    }
  }
}

// The fabric, if there is one; an error if servers need one and cannot have it.
std::unique_ptr<Fabric> read_network(const ClusterKeys& keys,
                                     const std::vector<ServerGroup>& groups, PartLog& parts) {
  std::vector<const ServerSpec*> servers;
  for (const ServerGroup& group : groups) {
    servers.insert(servers.end(), static_cast<std::size_t>(group.count), &group.spec);
  }
  const bool any_nic =
      std::ranges::any_of(groups, [](const ServerGroup& group) { return group.spec.nics > 0; });
  if (keys.fabric && (keys.fabric->attaches_gpus || any_nic)) {
    if (!keys.fabric->attaches_gpus) {
      check_nics(keys, groups);
    }
    return read_fabric(
        {.keys = *keys.fabric, .nodes = *keys.size, .servers = servers, .parts = parts});
  }
  if (servers.size() > 1 && !is_one_domain(groups)) {
    keys.size->fail(fmt::format("{} servers cannot reach each other: {}", servers.size(),
                                any_nic ? "there is no fabric" : "server.nics is 0"));
  }
  if (keys.fabric) {
    keys.fabric->node->fail("there is nothing to connect: server.nics is 0");
  }
  return nullptr;
}

// The last domain of a group may have fewer servers.
void join_domains(TopologyBuilder& builder, const std::vector<ServerGroup>& groups,
                  std::span<const ServerNodes> servers) {
  int domain = 0;
  for (const ServerGroup& group : groups) {
    std::span<const ServerNodes> own = servers.first(as_index(group.count));
    servers = servers.subspan(own.size());
    const std::size_t size = as_index(group.spec.nvswitch.servers);
    while (size > 1 && !own.empty()) {
      const std::size_t members = std::min(size, own.size());
      add_nvlink_domain(builder, group.spec, domain++, own.first(members));
      own = own.subspan(members);
    }
  }
}

// Fills `gpus` with those in use. The memories come last: see add_memory.
Topology build_topology(const std::vector<ServerGroup>& groups, Fabric* fabric,
                        const PartLog& parts, std::vector<NodeId>& gpus) {
  TopologyBuilder builder;
  std::vector<ServerNodes> servers;
  for (const ServerGroup& group : groups) {
    for (int index = 0; index < group.count; ++index) {
      servers.push_back(add_server(builder, group.spec));
      const std::vector<NodeId>& own = servers.back().gpus;
      gpus.insert(gpus.end(), own.begin(), own.begin() + group.used_gpus);
    }
  }
  join_domains(builder, groups, servers);
  if (fabric != nullptr) {
    fabric->add_to(builder, servers);
  }
  auto server = servers.begin();
  for (const ServerGroup& group : groups) {
    for (int index = 0; index < group.count; ++index) {
      add_memory(builder, group.spec, *server++);
    }
  }
  builder.set_parts(parts.names());
  return std::move(builder).build();
}

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// Those of the user's own parts that are among `names`: Cluster::own_parts.
std::vector<std::string> own_parts_used(const Catalogue& catalogue,
                                        const std::vector<std::string>& names) {
  std::vector<std::string> lines;
  for (const auto& [name, own] : catalogue.own()) {
    if (is_among(names, name)) {
      lines.push_back(fmt::format("{}: {}: {}{}{}", name, fmt::join(own.values, ", "), own.place,
                                  own.source.empty() ? "" : ": ", own.source));
    }
  }
  return lines;
}

void warn_of_unused_parts(const ConfigNode& kinds, const std::vector<std::string>& names,
                          std::vector<std::string>& warnings) {
  for (const auto& [kind, parts] : kinds.entries()) {
    for (const auto& [name, part] : parts.entries()) {
      if (!is_among(names, name)) {
        warnings.push_back(fmt::format("{}: nothing in the cluster is of this part", part.path()));
      }
    }
  }
}

// Takes the broken links out of a cluster that is whole.
void break_links(Cluster& cluster, std::span<const Fault> faults) {
  if (faults.empty()) {
    return;
  }
  BrokenTopology broken = apply_faults(cluster.topology, faults);
  std::swap(cluster.topology, broken.topology);  // Which then is the whole one.
  cluster.warnings.insert(cluster.warnings.end(), broken.warnings.begin(), broken.warnings.end());
  if (const auto reason = describe_unreachable(cluster)) {
    faults.front().fail(*reason);
  }
  for (std::string& line : moved_gpus(broken.topology, cluster, broken.servers)) {
    cluster.warnings.push_back(std::move(line));
  }
}

// Adds the user's parts to the catalogue.
ClusterKeys read_cluster(ConfigDocument& document, Catalogue& catalogue,
                         const ClusterOverrides& overrides) {
  apply_overrides(document, catalogue, overrides);
  for (const std::string& parts : overrides.parts) {
    catalogue.add(std::filesystem::path(parts));
  }
  ClusterKeys keys{.catalogue = &catalogue};
  read_fields(document.root(), keys, cluster_fields);
  document.finish();  // A key that is misspelt is told before what follows from its absence.
  return keys;
}

}  // namespace

std::vector<GpuModel> kinds_of_gpus(const std::filesystem::path& file, const Catalogue& catalogue,
                                    const ClusterOverrides& overrides) {
  ConfigDocument document = ConfigDocument::load(file);
  Catalogue with_own = catalogue;
  std::vector<GpuModel> kinds;
  for (const ServerGroupKeys& group : read_cluster(document, with_own, overrides).groups) {
    kinds.push_back(*group.server.gpu);
  }
  return kinds;
}

Cluster build_cluster(ConfigDocument& document, const Catalogue& catalogue,
                      const ClusterOverrides& overrides) {
  Catalogue with_own = catalogue;
  ClusterKeys keys = read_cluster(document, with_own, overrides);
  PartLog parts;
  std::vector<ServerGroup> groups;
  for (const ServerGroupKeys& group : keys.groups) {
    groups.push_back({.spec = read_server(group.server, parts), .count = group.count});
  }
  check_size(*keys.size, groups);
  use_gpus(keys, groups, overrides);
  const auto fabric = read_network(keys, groups, parts);
  const bool has_nics = !fabric || !keys.fabric->attaches_gpus;
  for (const std::string& pull : overrides.pulls) {
    keys.faults.push_back(pulled(pull));
  }

  std::vector<int> server_gpus;
  for (const ServerGroup& group : groups) {
    server_gpus.insert(server_gpus.end(), as_index(group.count), group.used_gpus);
  }
  std::vector<NodeId> gpus;
  Topology topology = build_topology(groups, fabric.get(), parts, gpus);
  const auto fewest_nics =
      std::ranges::min(groups, {}, [](const ServerGroup& group) { return group.spec.nics; });
  Cluster cluster = {.name = keys.name,
                     .catalogue = {},
                     .topology = std::move(topology),
                     .routing = fabric ? fabric->routing() : RoutingOptions{},
                     .nodes = static_cast<int>(server_gpus.size()),
                     .gpus_per_node = *std::ranges::max_element(server_gpus),
                     .server_gpus = server_gpus,
                     .gpus = std::move(gpus),
                     .nics_per_node = has_nics ? fewest_nics.spec.nics : 0,
                     .estimates = parts.lines(),
                     .own_parts = own_parts_used(with_own, parts.names()),
                     .warnings = fabric ? fabric->warnings() : std::vector<std::string>{}};
  for (const ServerGroup& group : groups) {
    cluster.warnings.insert(cluster.warnings.end(), group.spec.warnings.begin(),
                            group.spec.warnings.end());
  }
  cluster.catalogue = std::move(with_own);
  cluster.catalogue.keep(parts.names());
  if (const auto own = document.root().optional("parts")) {
    warn_of_unused_parts(*own, parts.names(), cluster.warnings);
  }
  break_links(cluster, keys.faults);
  return cluster;
}

Cluster load_cluster(const std::filesystem::path& file, const Catalogue& catalogue,
                     const ClusterOverrides& overrides) {
  ConfigDocument document = ConfigDocument::load(file);
  return build_cluster(document, catalogue, overrides);
}

ConfigDocument cluster_document(const std::filesystem::path& file, const Catalogue& catalogue,
                                const ClusterOverrides& overrides) {
  ConfigDocument document = ConfigDocument::load(file);
  apply_overrides(document, catalogue, overrides);
  return document;
}

void keep_ranks(const std::vector<NodeId>& gpus, std::vector<int> ranks, Cluster& part) {
  CHECK(!ranks.empty(), "a cluster has GPUs");
  std::ranges::sort(ranks);
  part.gpus.clear();
  part.server_gpus.clear();
  std::optional<ServerId> last;
  for (const int rank : ranks) {
    const NodeId gpu = gpus[static_cast<std::size_t>(rank)];
    const std::optional<ServerId> server = part.topology.node(gpu).server;
    if (part.server_gpus.empty() || server != last) {
      part.server_gpus.push_back(0);
    }
    ++part.server_gpus.back();
    last = server;
    part.gpus.push_back(gpu);
  }
  part.nodes = static_cast<int>(part.server_gpus.size());
  part.gpus_per_node = std::ranges::max(part.server_gpus);
}

std::vector<ServerRun> server_runs(const std::vector<int>& server_gpus) {
  std::vector<ServerRun> runs;
  for (const int gpus : server_gpus) {
    if (runs.empty() || runs.back().gpus != gpus) {
      runs.push_back({.servers = 0, .gpus = gpus});
    }
    ++runs.back().servers;
  }
  return runs;
}

std::string server_runs_text(const std::vector<int>& server_gpus) {
  const std::vector<ServerRun> runs = server_runs(server_gpus);
  if (runs.size() == 1) {
    return std::to_string(runs.front().gpus);
  }
  std::vector<std::string> words;
  for (const ServerRun& run : runs) {
    words.push_back(run.servers == 1 ? std::to_string(run.gpus)
                                     : fmt::format("{}(x{})", run.gpus, run.servers));
  }
  return fmt::format("{}", fmt::join(words, ","));
}

}  // namespace trainyard
