// SPDX-License-Identifier: Apache-2.0
// The network between servers: what all templates have in common. Each template is a file of its
// own that reads its keys and adds its switches and cables.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw/parts/catalogue.h"
#include "sim/config.h"
#include "sim/fields.h"
#include "topology/graph/topology.h"
#include "topology/routing/routing.h"
#include "topology/server/parts.h"
#include "topology/server/server.h"

namespace trainyard {

// The most cables side by side between two switches.
inline constexpr std::int64_t kMaxParallelCables = 64;

// A switch and a link of a graph, as the file has them.
struct GraphSwitchKeys {
  std::optional<ConfigNode> node = {};
  std::string name = {};
  const SwitchModel* part = nullptr;
  std::optional<int> count = {};
};
struct GraphLinkKeys {
  std::optional<ConfigNode> node = {};
  std::string from = {};
  std::string to = {};
  int count = 1;
  std::optional<SimTime> cable = {};
  std::optional<Bandwidth> rate = {};
};

// The keys of all templates. Lengths are times of flight; parts are null where none is named.
struct FabricKeys {
  Catalogue* catalogue = nullptr;       // Null where nothing is read.
  std::optional<ConfigNode> node = {};  // The mapping under `fabric`.
  std::size_t layout = 0;               // Index of the template.
  bool attaches_gpus = false;           // GPUs, not NICs, have the links into the fabric.
  bool has_optics = false;
  RoutingOptions routing = {};  // With the router of the template.
  std::optional<int> virtual_channels = {};
  // Switches of all templates; those of tiers are leaves.
  const SwitchModel* part = nullptr;
  std::optional<SimTime> cable = {};  // Also `local_cable`.
  std::optional<SimTime> host_cable = {};
  std::optional<int> endpoints_per_switch = {};
  // Tiers.
  const SwitchModel* spine = nullptr;
  const SwitchModel* core = nullptr;
  std::optional<SimTime> spine_cable = {};
  std::optional<SimTime> core_cable = {};
  double oversubscription = 1.0;
  double spine_oversubscription = 1.0;
  int planes = 1;
  bool is_dual_tor = false;
  int tiers = 0;  // Zero: as many as it takes.
  int k = 0;
  std::optional<int> nodes_per_leaf = {};
  std::optional<int> uplinks = {};
  std::optional<int> spines = {};
  std::optional<int> leaves_per_pod = {};
  std::optional<int> spine_uplinks = {};
  std::optional<int> cores = {};
  // Grids, by dimension.
  std::vector<int> shape = {};
  std::vector<int> links = {};
  std::vector<bool> wraps = {};
  const LinkModel* link = nullptr;  // Between chips that route themselves.
  // Groups and racks.
  int groups = 1;
  int group_leaves = 1;
  int group_spines = 0;
  int global_links = 1;
  int bundle = 1;
  int local_links = 1;
  SimTime global_cable = {};
  int q = 0;
  // Graphs.
  std::vector<GraphSwitchKeys> graph_switches = {};
  std::vector<GraphLinkKeys> graph_links = {};
};

void fabric_fields(Fields& fields, FabricKeys& keys);

// The input of a template.
struct FabricContext {
  const FabricKeys& keys;
  const ConfigNode&
      nodes;  // The value that gave the number of servers: errors of size point at it.
  // One per server; at least one has NICs, unless GPUs are attached.
  std::span<const ServerSpec* const> servers;
  PartLog& parts;

  [[nodiscard]] const ConfigNode& node() const { return *keys.node; }
};

// A fabric that was read and checked, ready to be built.
class Fabric {
 public:
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  virtual ~Fabric() = default;

  // Adds switches and cables to servers that have just been added, as many as were described when
  // it was read, and completes routing().
  virtual void add_to(TopologyBuilder& builder, const std::vector<ServerNodes>& servers) = 0;
  [[nodiscard]] const RoutingOptions& routing() const { return routing_; }
  // Returns remarks for the user, one line each.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 protected:
  explicit Fabric(RoutingOptions routing) : routing_(std::move(routing)) {}

  RoutingOptions routing_;
  std::vector<std::string> warnings_;
};

[[nodiscard]] std::unique_ptr<Fabric> read_fabric(const FabricContext& context);

// Rows that several templates have.
void add_channel_field(Fields& fields, FabricKeys& keys);
void add_group_fields(Fields& fields, FabricKeys& keys);

// A switch as the catalogue has it.
struct SwitchSpec {
  std::string_view name;
  std::uint16_t part = 0;
  int ports = 0;
  Bandwidth speed;  // Line rate of one port.
  SimTime latency;
  Bytes buffer{};  // Shared by its ports; 0 where unknown. Only packets look at it.
  bool in_network_reduction = false;
};
[[nodiscard]] SwitchSpec use_switch(const SwitchModel& model, PartLog& parts);
NodeId add_switch(TopologyBuilder& builder, const SwitchSpec& spec, std::string name);

// The estimate of what RS(544,514) at 100 Gb/s a lane takes at both ends together (IEEE 802.3dj
// contributions).
inline constexpr SimTime kFecLatency = nanoseconds(100);

// Cables of the fabric: time of flight, FEC and optical modules.
class CableReader {
 public:
  explicit CableReader(const FabricContext& context);
  // `efficiency` is payload over line rate, a property of the NICs.
  [[nodiscard]] LinkSpec link(Bandwidth line_rate, double efficiency, SimTime flight) const;
  // Appends the link of each NIC of a server to a switch.
  void add_nic_links(const ServerSpec& server, const SwitchSpec& part, SimTime flight,
                     std::vector<LinkSpec>& links) const;

 private:
  SimTime latency_;  // Latency of a link beside the time of flight.
};

// Switches of one part in groups or racks, and their links as add_group_fields() has them.
struct GroupLinks {
  SwitchSpec part;
  LinkSpec local_link;               // In a group or rack.
  LinkSpec global_link;              // Between groups or racks.
  std::vector<LinkSpec> host_links;  // One per NIC, server by server.
};
[[nodiscard]] GroupLinks read_group_links(const FabricContext& context);

}  // namespace trainyard
