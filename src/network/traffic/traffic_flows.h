// SPDX-License-Identifier: Apache-2.0
// The flows of a group, one after the other, in the order of their starts.
//
// They are made when they are asked for: an open loop of millions of flows takes memory for its
// endpoints alone. What is random comes from streams named after the group and the purpose, so
// that a group has the same flows whatever other groups there are. A permutation is uniform among
// those without a fixed point: shuffled again until it has none, e = 2.7 times on average.
#pragma once

#include <memory>
#include <optional>

#include "network/traffic/traffic_spec.h"

namespace trainyard {

class FlowPattern {
 public:
  FlowPattern() = default;
  FlowPattern(const FlowPattern&) = delete;
  FlowPattern& operator=(const FlowPattern&) = delete;
  virtual ~FlowPattern() = default;
  // Returns all but the label; starts count from that of the group and never decrease.
  virtual std::optional<FlowStart> next() = 0;
};

class FlowSource {
 public:
  // `group` must outlive the source.
  explicit FlowSource(const TrafficGroup& group);

  [[nodiscard]] std::optional<FlowStart> next();

 private:
  const TrafficGroup& group_;
  RandomStream labels_;
  std::unique_ptr<FlowPattern> pattern_;
};

}  // namespace trainyard
