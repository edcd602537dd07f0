// SPDX-License-Identifier: Apache-2.0
// Shortest paths with ECMP between GPUs.
//
// Inside a server a path is the cheapest one by link kind (NVLink before PCIe before the link
// between sockets); a GPU never forwards traffic of others. Two GPUs with links of their own into
// the fabric use those rather than PCIe. Between servers a path has three parts: from the GPU to a
// NIC of its own server that is nearest to it, through the fabric, from the nearest NIC of the
// target to the target. A GPU with several equally near NICs is bound to one of them by its index
// and the flow label. Where several next links are equally short, `EcmpHash` picks one by a hash of
// (flow label, source, target, node, seed), as a switch does, so collisions are real; `Static`
// picks by the target's index alone, as the destination-based forwarding tables of InfiniBand do;
// `Adaptive` picks the link with the fewest connections so far for its rate.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "sim/ids.h"
#include "topology/fabric_shape.h"
#include "topology/topology.h"

namespace trainyard {

enum class RoutingPolicy : std::uint8_t {
  EcmpHash,
  Static,
  Valiant,   // Grids and dragonflies: through a switch or group that a hash draws.
  Adaptive,  // The least loaded of equals; dragonflies: of minimal and Valiant's path.
};

// As cluster files write it.
[[nodiscard]] std::string_view to_string(RoutingPolicy policy);

struct RoutingOptions {
  RoutingPolicy policy = RoutingPolicy::EcmpHash;
  std::uint64_t seed = 1;
  FabricShape fabric = {};
};

class FabricRouter;

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
  // policy, picks among equally good links: label 0 the first, and so on around.
  [[nodiscard]] bool route(NodeId source, NodeId target, std::uint32_t flow_label,
                           std::vector<LinkId>& path);
  // The NICs by which a GPU uses the fabric, in the order in which its flows take turns: the GPU
  // itself where it has links of its own into the fabric, and none where it has no way there.
  [[nodiscard]] std::vector<NodeId> nics(NodeId gpu) const;
  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] FabricRouter& fabric();

 private:
  struct Tables;

  [[nodiscard]] bool append_by_fabric(NodeId source, NodeId target, std::uint32_t flow_label,
                                      std::vector<LinkId>& path);

  const Topology& topology_;
  RoutingOptions options_;
  std::unique_ptr<Tables> tables_;
};

// Sum of link latencies and of the latencies of the nodes in between, and of the last node if it is
// a switch: what a switch takes for itself passes through it as what it forwards does, and what it
// sends of its own has.
[[nodiscard]] SimTime path_latency(const Topology& topology, const std::vector<LinkId>& path);
// The least bandwidth on the path; the path must not be empty.
[[nodiscard]] Bandwidth path_bandwidth(const Topology& topology, const std::vector<LinkId>& path);

}  // namespace trainyard
