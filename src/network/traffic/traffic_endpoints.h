// SPDX-License-Identifier: Apache-2.0
// The devices of a cluster that flows begin and end at, by name, pattern and number.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config.h"
#include "sim/ids.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// GPUs and NICs of a cluster; keeps references to its names.
class TrafficDevices {
 public:
  explicit TrafficDevices(const Cluster& cluster);

  // nics: all, server by server. gpus: those that ranks use, by rank. A name such as server0/nic0,
  // or a pattern of names, in which * represents any text without a slash and [2-9] for the
  // numbers 2 to 9; a pattern gives devices in the order of the servers. Or a list of these, no
  // device twice.
  [[nodiscard]] std::vector<NodeId> read(const ConfigNode& node) const;
  // One device by its name.
  [[nodiscard]] NodeId read_one(const ConfigNode& node) const;
  // Returns nothing if there is no GPU or NIC of that name.
  [[nodiscard]] std::optional<NodeId> find(std::string_view name) const;
  // The name that is most like it, as the rest of an error: "; did you mean "server0/nic1"?".
  [[nodiscard]] std::string suggestion(std::string_view name) const;

  [[nodiscard]] const std::vector<NodeId>& nics() const { return nics_; }
  [[nodiscard]] const std::vector<NodeId>& gpus() const { return gpus_; }
  [[nodiscard]] const Topology& topology() const { return topology_; }

 private:
  void append(const ConfigNode& node, std::vector<NodeId>& devices) const;

  const Topology& topology_;
  std::vector<NodeId> nics_;
  const std::vector<NodeId>& gpus_;
  std::vector<std::pair<std::string_view, NodeId>> by_name_;  // Sorted.
};

// Returns whether every bracket of a pattern holds a range such as 2-9 and is closed.
[[nodiscard]] bool is_well_formed_pattern(std::string_view pattern);
// Returns whether a name is one of those that a pattern means.
[[nodiscard]] bool matches_pattern(std::string_view name, std::string_view pattern);

}  // namespace trainyard
