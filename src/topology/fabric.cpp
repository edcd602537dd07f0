// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "sim/check.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr std::array<std::string_view, 3> kTemplates = {"single-switch", "clos", "rail-optimised"};
constexpr std::array<std::string_view, 2> kPolicies = {"ecmp", "static"};
constexpr int kMostPorts = 4096;

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

int ceiling(int value, int divisor) {
  return (value + divisor - 1) / divisor;
}

// Finds the numbers of leaves, uplinks and spines.
class FabricSizer {
 public:
  FabricSizer(const ConfigNode& node, const ConfigNode& nodes, const ServerSpec& server,
              const SwitchModel& leaf, int leaf_ports)
      : node_(node),
        nodes_node_(nodes),
        leaf_(leaf),
        leaf_ports_(leaf_ports),
        servers_(static_cast<int>(nodes.as_integer(1, 1'000'000))),
        nics_(server.nics) {}

  void size_single_switch(FabricSpec& spec) const {
    if (servers_ > leaf_ports_ / nics_) {
      fail_size(leaf_ports_ / nics_, fmt::format("one {} of {} ports", leaf_.name, leaf_ports_));
    }
    spec.leaves = 1;
    spec.servers_per_leaf = servers_;
  }

  void size_leaves(FabricSpec& spec) {
    const bool is_rail = spec.layout == FabricTemplate::RailOptimised;
    ports_per_server_ = is_rail ? 1 : nics_;
    leaves_per_group_ = is_rail ? nics_ : 1;
    if (const auto ratio = node_.optional("oversubscription")) {
      oversubscription_ = ratio->as_number(0.1, 100.0);
    }
    spec.servers_per_leaf = servers_per_leaf();
    const int groups = ceiling(servers_, spec.servers_per_leaf);
    spec.leaves = groups * leaves_per_group_;
  }

  void size_spines(FabricSpec& spec, const ConfigNode& spine_node, const SwitchModel& spine,
                   int spine_ports) const {
    const int used = std::min(spec.servers_per_leaf, servers_) * ports_per_server_;
    spec.uplinks = uplinks_for(used);
    const auto uplinks = node_.optional("uplinks");
    if (uplinks) {
      spec.uplinks = static_cast<int>(uplinks->as_integer(1, kMostPorts));
    }
    if (used + spec.uplinks > leaf_ports_) {
      uplinks.value_or(node_).fail(
          fmt::format("{} ports down and {} up are more than the {} ports of {}", used,
                      spec.uplinks, leaf_ports_, leaf_.name));
    }
    if (spec.leaves > spine_ports) {
      const int groups = spine_ports / leaves_per_group_;
      if (groups == 0) {
        spine_node.fail(fmt::format("{} has {} ports, and {} leaves need one each", spine.name,
                                    spine_ports, spec.leaves));
      }
      fail_size(groups * spec.servers_per_leaf, fmt::format("two tiers of {} below {} of {} ports",
                                                            leaf_.name, spine.name, spine_ports));
    }
    spec.spines = spines(spec, spine_ports);
  }

 private:
  [[noreturn]] void fail_size(int most, const std::string& fabric) const {
    nodes_node_.fail(
        fmt::format("at most {} servers of {} NICs fit {}, found {}: lower nodes or take switches "
                    "with more ports",
                    most, nics_, fabric, servers_));
  }

  [[nodiscard]] int uplinks_for(int down) const {
    return std::max(1, static_cast<int>(std::ceil(down / oversubscription_ - 1e-9)));
  }

  [[nodiscard]] int servers_per_leaf() const {
    if (const auto given = node_.optional("nodes_per_leaf")) {
      const int servers = static_cast<int>(given->as_integer(1, kMostPorts));
      if (servers * ports_per_server_ > leaf_ports_) {
        given->fail(fmt::format("at most {}, the ports of {} over those of a server",
                                leaf_ports_ / ports_per_server_, leaf_.name),
                    given->found());
      }
      return servers;
    }
    const bool one_leaf = leaves_per_group_ == 1 && servers_ <= leaf_ports_ / ports_per_server_;
    if (one_leaf) {
      return servers_;
    }
    const int down = static_cast<int>(leaf_ports_ * oversubscription_ / (1.0 + oversubscription_));
    if (down < ports_per_server_) {
      node_.required("leaf").fail(
          fmt::format("{} has {} ports, too few for the {} NICs of a server and their uplinks",
                      leaf_.name, leaf_ports_, ports_per_server_));
    }
    return down / ports_per_server_;
  }

  [[nodiscard]] int spines(const FabricSpec& spec, int spine_ports) const {
    if (const auto given = node_.optional("spines")) {
      const int count = static_cast<int>(given->as_integer(1, kMostPorts));
      if (spec.uplinks % count != 0) {
        given->fail(fmt::format("a divisor of the {} uplinks of a leaf", spec.uplinks),
                    given->found());
      }
      if (spec.leaves * (spec.uplinks / count) > spine_ports) {
        given->fail(
            fmt::format("{} leaves of {} uplinks need more than the {} ports of each of "
                        "{} spines",
                        spec.leaves, spec.uplinks, spine_ports, count));
      }
      return count;
    }
    int count = ceiling(spec.leaves * spec.uplinks, spine_ports);
    while (spec.uplinks % count != 0) {
      ++count;
    }
    return count;
  }

  const ConfigNode& node_;
  const ConfigNode& nodes_node_;
  const SwitchModel& leaf_;
  int leaf_ports_;
  int servers_;
  int nics_;
  int ports_per_server_ = 1;  // On one leaf.
  int leaves_per_group_ = 1;
  double oversubscription_ = 1.0;
};

class FabricReader {
 public:
  FabricReader(const ConfigNode& node, const ServerSpec& server, const Catalogue& catalogue,
               EstimateLog& estimates)
      : node_(node), server_(server), catalogue_(catalogue), estimates_(estimates) {
    latency_ = estimates.use("network link", "FEC latency", fec_latency());
    const auto optics = node.optional("optics");
    if (optics && optics->as_bool()) {
      latency_ += estimates.use("network link", "optics latency", optics_latency());
    }
  }

  FabricSpec read(const ConfigNode& nodes) {
    FabricSpec spec;
    spec.layout = static_cast<FabricTemplate>(node_.required("template").as_choice(kTemplates));
    read_routing(spec);
    const SwitchModel& leaf = catalogue_.network_switch(node_.required("leaf"));
    spec.leaf_latency = estimates_.use(leaf.name, "latency", leaf.latency);
    const Bandwidth port = estimates_.use(leaf.name, "speed", leaf.speed);
    const SimTime cable = cable_delay(node_.required("cable"));
    spec.host_link = link(std::min(server_.nic_speed, port), cable);
    FabricSizer sizer(node_, nodes, server_, leaf, estimates_.use(leaf.name, "ports", leaf.ports));
    if (spec.layout == FabricTemplate::SingleSwitch) {
      sizer.size_single_switch(spec);
      return spec;
    }
    sizer.size_leaves(spec);
    read_spines(sizer, port, cable, spec);
    return spec;
  }

 private:
  void read_routing(FabricSpec& spec) const {
    if (const auto policy = node_.optional("routing")) {
      spec.routing.policy = static_cast<RoutingPolicy>(policy->as_choice(kPolicies));
    }
    if (const auto seed = node_.optional("routing_seed")) {
      spec.routing.seed = static_cast<std::uint64_t>(seed->as_integer(0, std::int64_t{1} << 62));
    }
  }

  void read_spines(const FabricSizer& sizer, Bandwidth leaf_port, SimTime cable, FabricSpec& spec) {
    const auto spine_node = spec.leaves > 1 ? node_.required("spine") : node_.optional("spine");
    const auto spine_cable = node_.optional("spine_cable");
    const SimTime delay = spine_cable ? cable_delay(*spine_cable) : cable;
    const SwitchModel* spine = spine_node ? &catalogue_.network_switch(*spine_node) : nullptr;
    if (spec.leaves == 1) {
      for (const std::string_view unused : {"uplinks", "spines"}) {
        if (const auto value = node_.optional(unused)) {
          value->skip();  // Of use with more servers: --nodes must not make it an error.
        }
      }
      return;
    }
    const int ports = estimates_.use(spine->name, "ports", spine->ports);
    sizer.size_spines(spec, *spine_node, *spine, ports);
    spec.spine_latency = estimates_.use(spine->name, "latency", spine->latency);
    const Bandwidth port = estimates_.use(spine->name, "speed", spine->speed);
    spec.spine_link = link(std::min(leaf_port, port), delay);
  }

  [[nodiscard]] LinkSpec link(Bandwidth line_rate, SimTime cable) const {
    return {.kind = LinkKind::Network,
            .bandwidth = line_rate.scaled(server_.network_efficiency),
            .latency = cable + latency_};
  }

  const ConfigNode& node_;
  const ServerSpec& server_;
  const Catalogue& catalogue_;
  EstimateLog& estimates_;
  SimTime latency_;  // Of a network link beside its cable.
};

}  // namespace

FabricSpec read_fabric(const ConfigNode& node, const ConfigNode& nodes, const ServerSpec& server,
                       const Catalogue& catalogue, EstimateLog& estimates) {
  CHECK(server.nics > 0, "a fabric without NICs");
  return FabricReader(node, server, catalogue, estimates).read(nodes);
}

// Links to one spine are neighbours in a leaf's list: Static relies on it to spread the way down as
// it does the way up.
void add_fabric(TopologyBuilder& builder, const FabricSpec& spec,
                const std::vector<ServerNodes>& servers) {
  std::vector<NodeId> leaves;
  for (int index = 0; index < spec.leaves; ++index) {
    leaves.push_back(builder.add_node({.kind = NodeKind::Switch,
                                       .name = fmt::format("leaf{}", index),
                                       .latency = spec.leaf_latency,
                                       .server = std::nullopt}));
  }
  for (std::size_t server = 0; server < servers.size(); ++server) {
    const std::vector<NodeId>& nics = servers[server].nics;
    const std::size_t group = server / static_cast<std::size_t>(spec.servers_per_leaf);
    for (std::size_t nic = 0; nic < nics.size(); ++nic) {
      const bool is_rail = spec.layout == FabricTemplate::RailOptimised;
      const std::size_t leaf = is_rail ? group * nics.size() + nic : group;
      builder.add_duplex_link(nics[nic], leaves[leaf], spec.host_link);
    }
  }
  std::vector<NodeId> spines;
  for (int index = 0; index < spec.spines; ++index) {
    spines.push_back(builder.add_node({.kind = NodeKind::Switch,
                                       .name = fmt::format("spine{}", index),
                                       .latency = spec.spine_latency,
                                       .server = std::nullopt}));
  }
  for (const NodeId leaf : leaves) {
    for (const NodeId spine : spines) {
      for (int parallel = 0; parallel < spec.uplinks / spec.spines; ++parallel) {
        builder.add_duplex_link(leaf, spine, spec.spine_link);
      }
    }
  }
}

}  // namespace trainyard
