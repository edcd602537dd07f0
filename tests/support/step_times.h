// SPDX-License-Identifier: Apache-2.0
// Collectives of round times for tests of the training step: bytes that a rank sends at 1 GB/s.
#pragma once

#include <vector>

#include "parallelism/traffic/group_times.h"
#include "parallelism/walk/step_traffic.h"

namespace trainyard {

class SteadyGroupTimes final : public GroupTimes {
 public:
  // `rate` in bytes per second.
  explicit SteadyGroupTimes(double rate = 1e9) : rate_(rate) {}

  [[nodiscard]] SimTime collective(Operation operation, const std::vector<int>& ranks,
                                   Bytes size) override {
    ++collectives;
    const GroupCall call{.operation = operation, .elements = size.count(), .element_bytes = 1};
    return SimTime(static_cast<std::int64_t>(sent_elements(call, static_cast<int>(ranks.size())) /
                                             rate_ * 1e12));
  }
  [[nodiscard]] SimTime transfer(int, int, Bytes size) override {
    ++transfers;
    return SimTime(static_cast<std::int64_t>(static_cast<double>(size.count()) / rate_ * 1e12));
  }

  int collectives = 0;
  int transfers = 0;

 private:
  double rate_;
};

}  // namespace trainyard
