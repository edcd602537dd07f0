// SPDX-License-Identifier: Apache-2.0
// Shortest paths with ECMP between GPUs.
//
// Inside a server a path is the cheapest one by link kind (NVLink before PCIe before the link
// between sockets); a GPU never forwards traffic of others. Two GPUs with links of their own into
// the fabric use those rather than PCIe. Between servers a path has three parts: from the GPU to a
// NIC of its own server that is nearest to it, through the fabric by fewest hops, from the nearest
// NIC of the target to the target. A GPU with several equally near NICs is bound to one of them by
// its index and the flow label. Devices that their server's software keeps apart (ServerTraits)
// meet in host memory, and with PXN data leaves by the NIC of the target's rail.
//
// Where several next links are equally short, `EcmpHash` picks one by a hash of (flow label,
// source, target, node, seed), as a switch does, so collisions are real; `Static` picks by the
// target's index alone, as the destination-based forwarding tables of InfiniBand do; `Adaptive`
// picks the link with the fewest connections so far for its rate (dragonflies: the less loaded of
// the minimal and Valiant's path). With `Spray` the packets of one message take all of them
// (network/flow/spray.h); a route is then one of the paths, by its number.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/ids.h"
#include "topology/graph/fabric_shape.h"
#include "topology/graph/path.h"
#include "topology/graph/topology.h"
#include "topology/routing/routing_policy.h"

namespace trainyard {

struct RoutingOptions {
  RoutingPolicy policy = RoutingPolicy::EcmpHash;
  std::uint64_t seed = 1;
  FabricShape fabric = {};
};

class Chooser;
class FabricRouter;

// Which of its NICs an end uses, or if it is a NIC which of its cables: they take turns by these.
struct NicTurns {
  std::uint32_t source = 0;
  std::uint32_t target = 0;
};

// Tables grow as destinations are first used, so an object belongs to one thread.
class Routing {
 public:
  Routing(const Topology& topology, RoutingOptions options);
  Routing(const Routing&) = delete;
  Routing& operator=(const Routing&) = delete;
  ~Routing();

  // Replaces `path` by the links from source to target, in order. False if there is no way; `path`
  // is then empty. A node to itself is an empty path and true. Besides GPUs and NICs, an NVSwitch
  // or a switch of the fabric may be either end. Between two switches the flow label, not the
  // policy, picks among equally good links: label 0 the first, and so on around. `number` is that
  // of the path, for Spray: its digits are the choices at the levels of the fabric. Without `turns`
  // NICs take turns by the flow label.
  [[nodiscard]] bool route(NodeId source, NodeId target, std::uint32_t flow_label,
                           std::vector<LinkId>& path, std::uint32_t number = 0,
                           const std::optional<NicTurns>& turns = std::nullopt);
  // Forgets the connections so far, by which Adaptive picks links.
  void forget_connections();
  // Returns the routes of the same links on which all that goes to one target takes one path
  // (Static), made when first asked for.
  [[nodiscard]] Routing& one_way();
  // The NICs by which a GPU uses the fabric, in the order in which its flows take turns: the GPU
  // itself where it has links of its own into the fabric, and none where it has no way there.
  [[nodiscard]] std::vector<NodeId> nics(NodeId gpu) const;
  // Returns the distance of two devices of one server; nothing where no way without the fabric
  // leads from a to b.
  [[nodiscard]] std::optional<Distance> distance(NodeId a, NodeId b);
  // The host memory nearest to a GPU, where it stages; nothing where its server has none.
  [[nodiscard]] std::optional<NodeId> host_memory(NodeId gpu) const;
  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] const PolicyTraits& policy() const { return traits(options_.policy); }
  [[nodiscard]] const RoutingOptions& options() const { return options_; }
  [[nodiscard]] FabricRouter& fabric();

 private:
  struct Tables;

  [[nodiscard]] Chooser local_chooser(NodeId source, NodeId target, std::uint32_t flow_label) const;
  [[nodiscard]] bool append_by_fabric(NodeId source, NodeId target, std::uint32_t flow_label,
                                      std::vector<LinkId>& path, std::uint32_t number,
                                      const NicTurns& turns);
  [[nodiscard]] bool append_by_nics(NodeId source, NodeId target, std::uint32_t flow_label,
                                    std::vector<LinkId>& path, std::uint32_t number,
                                    const NicTurns& turns);

  const Topology& topology_;
  RoutingOptions options_;
  std::unique_ptr<Tables> tables_;
  std::unique_ptr<Routing> one_way_;
};

}  // namespace trainyard
