// SPDX-License-Identifier: Apache-2.0
#include "cli/common/cost_options.h"

#include <utility>
#include <vector>

#include "cli/common/common.h"
#include "sim/config.h"

namespace trainyard {
namespace {

std::vector<std::string> known_parts(const Cluster& cluster) {
  const Catalogue& catalogue = load_default_catalogue();
  const auto& own = cluster.topology.parts();
  std::vector<std::string> names(own.begin(), own.end());
  const auto add = [&](const auto& models) {
    for (const auto& [name, model] : models) {
      names.push_back(name);
    }
  };
  add(catalogue.cpus());
  add(catalogue.gpus());
  add(catalogue.nics());
  add(catalogue.nvswitches());
  add(catalogue.switches());
  return names;
}

}  // namespace

Options cost_options() {
  return {{"costs", "", "also energy of a step and a token, by the watts of data sheets"},
          {"prices", "FILE",
           "also what a token costs: prices and watts of parts, of a kWh, years of use", kInput}};
}

std::optional<CostRequest> read_cost_options(const OptionReader& reader) {
  CostRequest request{.prices = reader.text("prices")};
  return reader.given("costs") || request.prices ? std::optional(std::move(request)) : std::nullopt;
}

ClusterCosts load_costs(const CostRequest& request, const Cluster& cluster) {
  PartCosts costs;
  ConfigDocument shipped = ConfigDocument::load(configs_folder() / "costs" / "power.yaml");
  costs.read(shipped);
  if (request.prices) {
    ConfigDocument own = ConfigDocument::load(*request.prices);
    costs.read(own, known_parts(cluster));
  }
  for (const auto& [name, own] : cluster.catalogue.own()) {
    if (const auto base = costs.parts.find(cluster.catalogue.base_of(name));
        base != costs.parts.end()) {
      costs.parts.try_emplace(name, base->second);
    }
  }
  return cluster_costs(cluster.topology, std::move(costs));
}

}  // namespace trainyard
