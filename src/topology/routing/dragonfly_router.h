// SPDX-License-Identifier: Apache-2.0
// Routes a dragonfly by its groups. A switch keeps its ports, a pair of groups its global links.
//
// Minimal: local, global, local, by fewest hops among the paths of one global link. Valiant:
// through a group that the flow draws, inside one group through a switch (Valiant, A scheme for
// fast parallel communication, 1982). Adaptive: the less loaded of the two paths, where the load of
// a path is the sum over its links, so that a longer path must be emptier by as much (UGAL: Singh,
// Load-balanced routing in interconnection networks, 2005). Where links are missing: two local hops
// for one, else a shortest path by breadth-first search; a path is found if there is one.
//
// Virtual channels: the global links passed so far, so three for Valiant and two for minimal paths
// (Kim et al., Technology-driven, highly-scalable dragonfly topology, 2008). A local hop that does
// not fit the order within its group takes the next: in a full mesh a second hop in a row; between
// leaves and spines a turn up again before the first global link, a turn down again behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "topology/routing/fabric_access.h"

namespace trainyard {

class DragonflyRouter final : public AccessRouter {
 public:
  DragonflyRouter(const Topology& topology, const RoutingOptions& options);
  // Whether routes of this policy may leave the minimal path for Valiant's.
  [[nodiscard]] static bool may_misroute(const PolicyTraits& policy) {
    return policy.is_valiant || policy.switches_choose();
  }

  void virtual_channels(std::span<const LinkId> path,
                        std::vector<std::uint8_t>& channels) const override;
  // Returns the diameter over minimal paths between leaves; none where links are missing, leaves
  // have no endpoint, or routes may be longer.
  [[nodiscard]] std::optional<int> diameter() const override;
  [[nodiscard]] bool weighs_lengths() const override { return true; }
  // All turns that the rules of the channels allow; some of them no shortest path takes.
  void add_dependencies(DependencyGraph& graph) override;

 private:
  [[nodiscard]] std::uint32_t group(std::uint32_t at) const { return at / size_; }
  [[nodiscard]] bool is_leaf(std::uint32_t at) const {
    return leaves_ == 0 || at % size_ < leaves_;
  }
  // Whether two switches of a group have links in a whole dragonfly.
  [[nodiscard]] bool is_joined(std::uint32_t from, std::uint32_t to) const {
    return from != to && (leaves_ == 0 || is_leaf(from) != is_leaf(to));
  }
  [[nodiscard]] std::span<const LinkId> locals(std::uint32_t from, std::uint32_t to) const {
    return locals_.of(from * size_ + to % size_);
  }
  [[nodiscard]] std::span<const LinkId> globals(std::uint32_t from, std::uint32_t to) const {
    return globals_.of(from * groups_ + to);
  }
  [[nodiscard]] std::uint32_t source(LinkId link) const;
  [[nodiscard]] std::uint32_t target(LinkId link) const;
  // Hops within a group, at most two.
  [[nodiscard]] std::optional<std::uint32_t> local_hops(std::uint32_t from, std::uint32_t to) const;
  [[nodiscard]] std::optional<std::uint32_t> minimal_hops(std::uint32_t from, LinkId global,
                                                          std::uint32_t to) const;
  [[nodiscard]] bool append_local(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                  std::vector<LinkId>& path);
  // Over the global link between two groups that is nearest to `from`, and to `to` if it is given.
  [[nodiscard]] std::optional<LinkId> choose_global(std::uint32_t from, std::uint32_t to_group,
                                                    std::optional<std::uint32_t> to,
                                                    const Chooser& chooser);
  [[nodiscard]] bool append_minimal(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                    std::vector<LinkId>& path);
  [[nodiscard]] bool append_valiant(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                    std::vector<LinkId>& path);
  [[nodiscard]] bool append_adaptive(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                     std::vector<LinkId>& path);
  [[nodiscard]] bool append_shortest(std::uint32_t from, std::uint32_t to,
                                     std::vector<LinkId>& path) const;
  [[nodiscard]] bool append_between(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                    std::vector<LinkId>& path) override;
  [[nodiscard]] int groups_apart(std::uint32_t from, std::uint32_t to) const;
  [[nodiscard]] bool has_minimal(std::uint32_t from, std::uint32_t to) const;
  void add_searched(DependencyGraph& graph);

  std::uint32_t size_;    // Switches of a group.
  std::uint32_t leaves_;  // Leaves of a group; zero: fully meshed.
  std::uint32_t groups_;
  bool may_misroute_;
  Lists<LinkId> locals_;   // Indexed by switch and place in the group.
  Lists<LinkId> globals_;  // Indexed by ordered pair of groups.
  Lists<LinkId> out_;      // All links of each switch.
  bool is_healthy_ = true;
  std::vector<LinkId> candidates_;
  std::vector<LinkId> minimal_;
  std::vector<LinkId> indirect_;
};

}  // namespace trainyard
