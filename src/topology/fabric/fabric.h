// SPDX-License-Identifier: Apache-2.0
// The network between servers: what all templates have in common. Each template is a file of its
// own that reads its keys and adds its switches and cables.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw/parts/catalogue.h"
#include "sim/config.h"
#include "topology/graph/topology.h"
#include "topology/routing/routing.h"
#include "topology/server/parts.h"
#include "topology/server/server.h"

namespace trainyard {

// The most cables side by side between two switches.
inline constexpr std::int64_t kMostParallelCables = 64;

// The input that a template reads.
struct FabricContext {
  const ConfigNode& node;  // The mapping under `fabric`.
  const ConfigNode&
      nodes;  // The value that gave the number of servers: errors of size point at it.
  // One per server; at least one has NICs, unless attaches_gpus().
  std::span<const ServerSpec* const> servers;
  const Catalogue& catalogue;
  PartLog& parts;
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
// Key `attach`: whether GPUs, not NICs, have the links into the fabric.
[[nodiscard]] bool attaches_gpus(const ConfigNode& node);

// Keys `routing` and `routing_seed`, with the router of the template.
[[nodiscard]] RoutingOptions read_routing(const ConfigNode& node);
// Key `virtual_channels`; without it, `needed` by routes.
[[nodiscard]] int read_virtual_channels(const ConfigNode& node, int needed);

// A switch as the catalogue has it.
struct SwitchSpec {
  std::string_view name;
  std::uint16_t part = 0;
  int ports = 0;
  Bandwidth speed;  // Line rate of one port.
  SimTime latency;
  bool in_network_reduction = false;
};
[[nodiscard]] SwitchSpec read_switch(const FabricContext& context, const ConfigNode& name);
NodeId add_switch(TopologyBuilder& builder, const SwitchSpec& spec, std::string name);

// Cables of the fabric: key `optics`; time of flight, FEC and optical modules.
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
// Payload over line rate of the first NIC, which links between switches have too; 1 without NICs.
[[nodiscard]] double first_efficiency(const FabricContext& context);

}  // namespace trainyard
