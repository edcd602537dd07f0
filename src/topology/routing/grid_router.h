// SPDX-License-Identifier: Apache-2.0
// Routes torus, mesh and HyperX by arithmetic on coordinates: dimension order. A switch keeps its
// ports and nothing for each destination.
//
// In each dimension a torus goes the shorter way round, half way round an even ring either way; a
// HyperX takes one hop. Where a link on the way is missing: the other way round the ring, else the
// dimensions in another order, else a shortest path by breadth-first search; so a path is found if
// there is one.
//
// Virtual channels. Within a ring a packet is in channel 0 until it has passed the wrap, the date
// line, and in channel 1 behind it (Dally and Seitz, Deadlock-free message routing in
// multiprocessor interconnection networks, 1987). Dimensions in order make one phase. Where a path
// breaks that order (the second half of Valiant's, detours) the next phase begins, in channels of
// its own as long as there are any. So the channel follows from the links of the path alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "topology/routing/fabric_access.h"

namespace trainyard {

class GridRouter final : public AccessRouter {
 public:
  GridRouter(const Topology& topology, const RoutingOptions& options);

  void virtual_channels(std::span<const LinkId> path,
                        std::vector<std::uint8_t>& channels) const override;
  // Returns the diameter of the whole grid; none where links are missing, switches have no
  // endpoint, or routes are Valiant's.
  [[nodiscard]] std::optional<int> diameter() const override;
  // Every switch counts as source and target; all choices among ties and parallel links.
  void add_dependencies(DependencyGraph& graph) override;

 private:
  friend class GridDependencies;

  static constexpr LinkId kNoLink{std::numeric_limits<std::uint32_t>::max()};

  // A port leads up or down one step in a dimension, or, in a HyperX, to a coordinate of it.
  struct Port {
    std::uint32_t dimension;
    std::uint32_t slot;  // Among the ports of a switch.
    bool is_wrap;
  };
  // The way through one dimension: a port that is taken until the coordinate is right.
  struct Way {
    std::uint32_t slot;
    std::optional<LinkId> first;  // Chosen already.
  };
  enum class Ties : std::uint8_t { Choose, First };
  // Dimensions in the order in which a path corrects them.
  using Order = std::span<const std::uint32_t>;

  [[nodiscard]] std::uint32_t coordinate(std::uint32_t at, std::uint32_t dimension) const {
    return at / strides_[dimension] % lengths_[dimension];
  }
  [[nodiscard]] std::span<const LinkId> links(std::uint32_t at, std::uint32_t slot) const {
    const std::size_t first = (std::size_t{at} * slots_.back() + slot) * parallel_;
    std::size_t count = 0;
    while (count < parallel_ && ports_[first + count] != kNoLink) {
      ++count;
    }
    return std::span(ports_).subspan(first, count);
  }
  [[nodiscard]] std::uint32_t dimension_of(std::uint32_t slot) const;
  [[nodiscard]] std::optional<std::uint32_t> neighbour(std::uint32_t at, std::uint32_t slot) const;
  [[nodiscard]] Port port(const Link& link) const;
  // Steps between two coordinates by a port; none if it does not lead there.
  [[nodiscard]] std::optional<std::uint32_t> steps(std::uint32_t slot, std::uint32_t from,
                                                   std::uint32_t to) const;
  [[nodiscard]] bool is_clear(std::uint32_t at, std::uint32_t slot, std::uint32_t steps) const;
  // The ports by which a route may go from `at` to coordinate `to`: both, up first, for a tie.
  struct Ways {
    std::uint32_t count = 0;
    std::array<std::uint32_t, 2> slots = {0, 0};
  };
  [[nodiscard]] Ways ways(std::uint32_t at, std::uint32_t dimension, std::uint32_t to) const;
  [[nodiscard]] std::optional<Way> choose_way(std::uint32_t at, std::uint32_t dimension,
                                              std::uint32_t to, const Chooser& chooser, Ties ties);
  [[nodiscard]] bool append_ordered(std::uint32_t from, std::uint32_t to, Order order,
                                    const Chooser& chooser, Ties ties, std::vector<LinkId>& path);
  // The links from `at`, which becomes the switch at coordinate `to` of the dimension.
  void append_way(std::uint32_t& at, std::uint32_t dimension, std::uint32_t to, const Way& way,
                  const Chooser& chooser, std::vector<LinkId>& path) const;
  void enter_ports();
  [[nodiscard]] bool append_between(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                    std::vector<LinkId>& path) override;
  // Appends a way by another order, or by search.
  [[nodiscard]] bool append_around(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                   std::vector<LinkId>& path);
  [[nodiscard]] bool append_shortest(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                     std::vector<LinkId>& path);
  [[nodiscard]] bool append_valiant(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                    std::vector<LinkId>& path);

  std::uint32_t switches_;
  bool joins_all_;
  bool is_valiant_;
  int phases_;
  int channels_of_phase_;
  std::vector<std::uint32_t> lengths_;
  std::vector<std::uint32_t> strides_;
  std::vector<bool> wraps_;
  std::vector<std::uint32_t> identity_;  // Dimensions in order.
  std::vector<std::uint32_t> slots_;     // The first port of each dimension, then their number.
  std::size_t parallel_ = 1;             // The most links of a port.
  std::vector<LinkId> ports_;            // By switch and slot, `parallel_` each.
  bool is_healthy_ = true;
  std::vector<LinkId> tied_;
};

}  // namespace trainyard
