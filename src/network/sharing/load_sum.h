// SPDX-License-Identifier: Apache-2.0
// Many loads as one, without keeping them.
#pragma once

#include <vector>

#include "network/sharing/load_sharing.h"
#include "topology/graph/topology.h"

namespace trainyard {

// Gives what merge() makes of one load after the other, to the same bits.
class LoadSum {
 public:
  explicit LoadSum(const Topology& topology) : weights_(topology.link_count(), 0.0) {}

  void add(const Load& load);
  [[nodiscard]] Load total() const;

 private:
  std::vector<double> weights_;  // Indexed by LinkId; zero where nothing was added.
};

}  // namespace trainyard
