// SPDX-License-Identifier: Apache-2.0
// Cables that are pulled and devices that are dead, taken out of a topology before it is routed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/config.h"
#include "sim/fields.h"
#include "topology/cluster/cluster.h"
#include "topology/graph/topology.h"

namespace trainyard {

// One fault as a file or the command line names it.
struct Fault {
  std::optional<ConfigNode> node = {};  // Where it stands; none for an option.
  std::string option = {};              // "--pull A,B", of which `ends` then holds "A,B".
  // Two nodes: what joins them, in both directions. One: everything that ends at it.
  std::vector<std::string> ends = {};
  std::optional<int> links = {};  // So many of several parallel links; otherwise all.
  std::optional<int> lanes = {};  // So many lanes of the bundles; otherwise all.

  [[noreturn]] void fail(std::string_view message) const;
};

// An item of the key `faults`.
struct FaultKind {
  void read(const Fields& parent, const ConfigNode& node, Fault& fault) const;
  void describe(Schema& schema, Fault& fault) const;
};

// Returns the fault of `--pull PULL`.
[[nodiscard]] Fault pulled(const std::string& pull);

struct BrokenTopology {
  // The same nodes; links are numbered anew, in the same order.
  Topology topology;
  // One line for each fault: what is lost.
  std::vector<std::string> warnings;
  // Servers that lost something, in order.
  std::vector<ServerId> servers;
};

// Throws ConfigError for unknown names and for nodes that are not joined.
[[nodiscard]] BrokenTopology apply_faults(const Topology& topology, std::span<const Fault> faults);

// The links that the fault takes out, by id. Throws as apply_faults() does.
[[nodiscard]] std::vector<LinkId> links_of_fault(const Topology& topology, const Fault& fault);

// Lists the GPUs of `servers` that send by other NICs than before; servers alike share a line.
[[nodiscard]] std::vector<std::string> moved_gpus(const Topology& before, const Cluster& after,
                                                  std::span<const ServerId> servers);

}  // namespace trainyard
