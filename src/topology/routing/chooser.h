// SPDX-License-Identifier: Apache-2.0
// How one route chooses among equally good links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "topology/graph/topology.h"
#include "topology/routing/routing.h"

namespace trainyard {

// The links up of a switch, on one level of a fabric: how many, of which so many lead to one
// switch. What static routing needs to know of the levels below (see Chooser).
struct LevelLinks {
  std::uint32_t ways = 1;
  std::uint32_t parallel = 1;
};
// Counts them: the most of any switch, over the most switches above.
class LevelCount {
 public:
  // The targets of the links up of one more switch.
  void add(std::vector<std::uint32_t> targets);
  [[nodiscard]] LevelLinks links() const;

 private:
  std::size_t ways_ = 1;
  std::size_t targets_ = 1;
};

// Counts what adaptive routing knows of a link: the connections already routed over it. A stand-in
// for the queues that a switch sees, which the engines that resolve a route once do not have.
class LinkLoads {
 public:
  // `topology` must outlive the object.
  explicit LinkLoads(const Topology& topology)
      : topology_(topology), connections_(topology.link_count(), 0) {}

  void add(std::span<const LinkId> path) {
    for (const LinkId link : path) {
      ++connections_[link.value()];
    }
  }
  void forget() { connections_.assign(connections_.size(), 0); }
  // Connections over the rate of the link, in units of 1e-18 s/bit: whole numbers, so that sums
  // do not depend on their order.
  [[nodiscard]] std::uint64_t of(LinkId link) const {
    constexpr std::uint64_t kUnit = 1'000'000'000'000'000'000;
    const std::int64_t rate = topology_.link(link).spec.bandwidth.bits_per_second();
    return connections_[link.value()] * (kUnit / static_cast<std::uint64_t>(rate));
  }

 private:
  const Topology& topology_;
  std::vector<std::uint32_t> connections_;
};

class Chooser {
 public:
  // `target_index` numbers the targets as Static sees them, the paths as Spray does. Adaptive looks
  // at `loads`, which must outlive the chooser. `cables`: see cables().
  Chooser(const RoutingOptions& options, NodeId source, NodeId target, std::uint32_t flow_label,
          std::uint32_t target_index, const LinkLoads* loads = nullptr,
          const std::optional<NicTurns>& cables = std::nullopt);
  // Takes the link of this number, counted around, at every choice.
  explicit Chooser(std::uint32_t turn) : turn_(turn) {}
  // The choice at `node` among `count` links; `divisor` is the number of paths that the levels
  // below have told apart already, so that Static and Spray go by another digit of the index at
  // each level.
  [[nodiscard]] std::uint32_t pick(NodeId node, std::uint32_t count, std::uint32_t divisor) const;
  // The same above levels whose choices are given by `below`, from the lowest up. A level with w
  // links up, p of them to each switch above, tells index mod w apart by the link and floor of it
  // over p by the switch, so that switch has index mod p left to tell, and floor(index / w).
  [[nodiscard]] std::uint32_t pick_above(NodeId node, std::uint32_t count,
                                         std::span<const LevelLinks> below) const;
  // The choice at the source among `count` pairs of a port of it and a port of the target. It is
  // the sender's and not that of a table in a switch: with Static and Spray flows take turns.
  [[nodiscard]] std::uint32_t pick_ports(NodeId source, std::uint32_t count) const;
  // Returns which links to take of those of the source into the fabric and of those from it to the
  // target, counted around, if a way leads from one to the other; where there is nothing,
  // pick_ports() says.
  [[nodiscard]] const std::optional<NicTurns>& cables() const { return cables_; }
  // The same among `links`, of which there is at least one. Adaptive takes the least loaded.
  [[nodiscard]] LinkId pick(NodeId node, std::span<const LinkId> links,
                            std::uint32_t divisor) const;
  [[nodiscard]] LinkId pick_above(NodeId node, std::span<const LinkId> links,
                                  std::span<const LevelLinks> below) const;
  // A number below `count` that the route has drawn, whatever the policy.
  [[nodiscard]] std::uint32_t draw(std::uint32_t count) const;
  // The sum over the links of a path; zero for all but Adaptive.
  [[nodiscard]] std::uint64_t load(std::span<const LinkId> path) const;
  [[nodiscard]] const PolicyTraits& policy() const { return *policy_; }

 private:
  // The high 32 bits of the hash scaled to the range: no division, and a bias below count / 2^32.
  [[nodiscard]] std::uint32_t hashed(std::uint64_t place, std::uint32_t count) const;
  [[nodiscard]] LinkId pick_least_loaded(NodeId node, std::span<const LinkId> links) const;

  const PolicyTraits* policy_ = &traits(RoutingPolicy::Static);
  std::uint64_t hash_ = 0;
  std::uint32_t flow_label_ = 0;
  std::uint32_t target_index_ = 0;
  std::optional<std::uint32_t> turn_ = {};
  const LinkLoads* loads_ = nullptr;
  std::optional<NicTurns> cables_ = {};
};

}  // namespace trainyard
