// SPDX-License-Identifier: Apache-2.0
// Adds up the price and the power of the parts of a cluster. Most prices are known only to whoever
// pays them: a missing value is named, never taken as zero.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/config.h"
#include "topology/graph/topology.h"

namespace trainyard {

class Fields;

struct PartCost {
  std::optional<double> watts = {};  // Its limit.
  std::optional<double> idle_watts = {};
  std::optional<double> price = {};
};

struct PartCosts {
  std::map<std::string, PartCost> parts;  // Costs by name in the catalogue.
  std::string currency = {};              // Currency of all prices.
  std::optional<double> kwh = {};         // Price of a kWh,
  std::optional<double> years = {};       // and time over which parts are paid off.

  // Values of the document replace those that are there. Strict; a price needs a currency, and a
  // part is one of `known`, if these are given. Where the document has sources, each value of a
  // part names one. Throws ConfigError with the place of the mistake.
  void read(ConfigDocument& document, std::span<const std::string> known = {});
};

// The keys of such a file.
void cost_fields(Fields& fields, PartCosts& costs);

// GPUs, CPUs, NICs, NVSwitches and switches of one part. The NVSwitch chips of a server are one,
// as in the topology.
struct CountedPart {
  NodeKind kind = NodeKind::Gpu;
  std::string part;
  std::size_t count = 0;
  PartCost cost = {};
};

struct CostTotals {
  double watts = 0.0;       // At their limits, of the parts that say it.
  double idle_watts = 0.0;  // The limit where no less is said.
  double gpu_watts = 0.0;   // The GPUs of both.
  double gpu_idle_watts = 0.0;
  double price = 0.0;  // Price of the parts that state one.
  std::vector<std::string> without_watts = {};
  std::vector<std::string> without_price = {};
  std::vector<std::string> without_idle = {};  // GPUs.
};

// All of it, of one cluster.
struct ClusterCosts {
  PartCosts costs;
  // Parts that the topology has, whether ranks use them or not, by kind and name.
  std::vector<CountedPart> parts;
  CostTotals totals;
};

[[nodiscard]] ClusterCosts cluster_costs(const Topology& topology, PartCosts costs);

}  // namespace trainyard
