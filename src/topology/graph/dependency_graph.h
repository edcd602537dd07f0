// SPDX-License-Identifier: Apache-2.0
// Finds which buffers wait for which, and the cycles among them: where a lossless fabric can
// deadlock.
//
// A packet that holds the buffer behind link a (at a's target, of a's virtual channel) waits for
// the buffer behind the link b that it takes next. A routing is free of deadlock if this relation
// has no cycle (Dally and Seitz, Deadlock-free message routing in multiprocessor interconnection
// networks, 1987). Where all of several links wait for all of several others, a hub between them
// keeps the graph linear in the number of links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/ids.h"

namespace trainyard {

class DependencyGraph {
 public:
  // `links` of the topology, each with `channels` virtual channels.
  DependencyGraph(std::uint32_t links, int channels);

  [[nodiscard]] std::uint32_t buffer(LinkId link, int channel) const {
    return link.value() * channels_ + static_cast<std::uint32_t>(channel);
  }
  // Adds hubs that follow one another, and returns the first.
  [[nodiscard]] std::uint32_t add_hubs(std::uint32_t count) {
    return std::exchange(vertices_, vertices_ + count);
  }
  // Adds an edge from what holds to what it waits for.
  void add(std::uint32_t holder, std::uint32_t awaited) { edges_.emplace_back(holder, awaited); }

  [[nodiscard]] std::size_t edge_count() const { return edges_.size(); }

  // The links of one cycle, in the order in which each waits for the next; empty if there is none.
  // Always the same one for the same graph.
  [[nodiscard]] std::vector<LinkId> find_cycle() const;

 private:
  std::uint32_t channels_;
  std::uint32_t buffers_;
  std::uint32_t vertices_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
};

}  // namespace trainyard
