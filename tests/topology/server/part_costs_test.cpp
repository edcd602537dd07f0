// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/server/part_costs.h"

#include <set>
#include <string>
#include <vector>

#include "support/built_clusters.h"

namespace trainyard {
namespace {

void read_costs(PartCosts& costs, const std::string& text) {
  ConfigDocument document = ConfigDocument::parse(text, "costs.yaml");
  costs.read(document);
}

PartCosts some_costs() {
  PartCosts costs;
  read_costs(costs,
             "currency: USD\nkwh: 0.1\nparts: {H100-SXM: {watts: 700, idle_watts: 100, price: "
             "1000}, ConnectX-7: {watts: 25}}\n");
  return costs;
}

std::string complaint(const std::string& text) {
  PartCosts costs;
  try {
    read_costs(costs, text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("parts are counted, and what nobody says is named", "[part-costs]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2});
  const ClusterCosts all = cluster_costs(cluster.topology, some_costs());
  const std::vector<CountedPart>& parts = all.parts;
  REQUIRE(parts.front().part == "H100-SXM");
  REQUIRE(parts.front().count == 16);
  std::set<std::string> names;
  for (const CountedPart& part : parts) {
    names.insert(part.part);
  }
  REQUIRE(names.size() == parts.size());
  const CostTotals& totals = all.totals;
  std::size_t nics = 0;
  for (const CountedPart& part : parts) {
    nics += part.part == "ConnectX-7" ? part.count : 0;
  }
  REQUIRE(totals.gpu_watts == 16 * 700.0);
  REQUIRE(totals.watts == 16 * 700.0 + static_cast<double>(nics) * 25.0);
  REQUIRE(totals.price == 16 * 1000.0);
  REQUIRE(totals.without_watts.size() + 2 == parts.size());
  REQUIRE(totals.without_price.size() + 1 == parts.size());
  REQUIRE(totals.without_idle.empty());
}

TEST_CASE("without its idle power a GPU counts at its limit", "[part-costs]") {
  PartCosts costs;
  read_costs(costs, "parts: {H100-SXM: {watts: 700}}");
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 1});
  const ClusterCosts all = cluster_costs(cluster.topology, costs);
  REQUIRE(all.totals.without_idle == std::vector<std::string>{"H100-SXM"});
  REQUIRE(all.totals.gpu_idle_watts == 8 * 700.0);
  REQUIRE(all.parts.front().part == "H100-SXM");
}

TEST_CASE("parts can be held to those that are known", "[part-costs]") {
  const std::vector<std::string> known{"A", "B"};
  PartCosts costs;
  ConfigDocument good = ConfigDocument::parse("parts: {A: {watts: 5}}", "costs.yaml");
  costs.read(good, known);
  REQUIRE(costs.parts.at("A").watts == 5.0);
  ConfigDocument bad = ConfigDocument::parse("parts: {Q: {watts: 5}}", "costs.yaml");
  REQUIRE_THROWS_AS(costs.read(bad, known), ConfigError);
}

TEST_CASE("one file of costs replaces values of another", "[part-costs]") {
  PartCosts costs = some_costs();
  read_costs(costs, "currency: EUR\nparts: {H100-SXM: {watts: 500}}");
  REQUIRE(costs.currency == "EUR");
  REQUIRE(costs.parts.at("H100-SXM").watts == 500.0);
  REQUIRE(costs.parts.at("H100-SXM").price == 1000.0);
  REQUIRE(costs.kwh == 0.1);
}

TEST_CASE("the shipped file names parts of the catalogue", "[part-costs]") {
  ConfigDocument document = ConfigDocument::load(kConfigsFolder / "costs" / "power.yaml");
  PartCosts costs;
  costs.read(document);
  REQUIRE(costs.parts.size() >= 10);
  for (const auto& [name, cost] : costs.parts) {
    INFO(name);
    REQUIRE(shipped_catalogue().gpus().contains(name));
    REQUIRE(cost.watts > 100.0);
    REQUIRE_FALSE(cost.price.has_value());
  }
}

TEST_CASE("mistakes in costs are told with their place", "[part-costs]") {
  REQUIRE(complaint("parts: {A: {price: 5}}") ==
          "costs.yaml:1:12: parts.A: price: expected a currency in the file, found none");
  REQUIRE(complaint("kwh: 0.1").find("kwh: expected a currency") != std::string::npos);
  REQUIRE(complaint("parts: {A: {watts: 5, idle_watts: 6}}").find("expected at most the watts") !=
          std::string::npos);
  REQUIRE(complaint("parts: {A: {watt: 5}}").find("watt") != std::string::npos);
  REQUIRE(complaint("sources: {s: here}\nparts: {A: {watts: 5}}").find("parts.A.watts") !=
          std::string::npos);
}

}  // namespace trainyard
