// SPDX-License-Identifier: Apache-2.0
#include "network/sharing/load_sum.h"

#include <cstdint>

#include "sim/check.h"

namespace trainyard {

void LoadSum::add(const Load& load) {
  for (const LinkWeight& one : load) {
    CHECK(one.weight > 0.0, "a load has weight on each of its links");
    weights_[one.link.value()] += one.weight;
  }
}

Load LoadSum::total() const {
  Load load;
  for (std::uint32_t id = 0; id < weights_.size(); ++id) {
    if (weights_[id] > 0.0) {
      load.push_back({.link = LinkId(id), .weight = weights_[id]});
    }
  }
  return load;
}

}  // namespace trainyard
