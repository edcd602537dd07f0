// SPDX-License-Identifier: Apache-2.0
// Counts what adaptive routing knows of a link: the connections already routed over it. A stand-in
// for the queues that a switch sees, which the engines that resolve a route once do not have.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topology/graph/topology.h"

namespace trainyard {

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

}  // namespace trainyard
