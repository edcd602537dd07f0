// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/cost_options.h"

#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/program.h"

namespace trainyard {
namespace {

std::string price_complaint(const ScratchFolder& folder, const std::string& text) {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 1});
  const std::string file = folder.write("prices.yaml", text).string();
  try {
    (void)load_costs({.prices = file}, cluster);
  } catch (const ConfigError& error) {
    return std::string(error.what()).substr(file.size());
  }
  return "";
}

}  // namespace

TEST_CASE("costs are asked for by either option", "[cost-options]") {
  const auto asked = [](const std::vector<std::string>& arguments) {
    return read_cost_options(parse_options(step_command(), arguments));
  };
  REQUIRE_FALSE(asked({}).has_value());
  REQUIRE_FALSE(asked({"--costs"})->prices.has_value());
  REQUIRE(asked({"--prices", "p.yaml"})->prices == "p.yaml");
}

TEST_CASE("a part that nobody has is a mistake in the prices", "[cost-options]") {
  const ScratchFolder folder;
  REQUIRE(price_complaint(folder, "currency: USD\nparts: {H100-SMX: {price: 5}}") ==
          ":2:19: parts.H100-SMX: expected a part of the catalogue or of the cluster, found "
          "\"H100-SMX\"; did you mean \"H100-SXM\"?");
  REQUIRE(price_complaint(folder, "currency: USD\nparts: {A100-SXM-80GB: {price: 5}}").empty());
  REQUIRE_FALSE(price_complaint(folder, "kwh: 0.1").empty());
}

TEST_CASE("watts that are shipped hold until the user says others", "[cost-options]") {
  const ScratchFolder folder;
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 1});
  REQUIRE(load_costs({}, cluster).totals.gpu_watts == 8 * 700.0);
  const std::string file =
      folder.write("prices.yaml", "parts: {H100-SXM: {watts: 500, idle_watts: 80}}").string();
  const ClusterCosts costs = load_costs({.prices = file}, cluster);
  REQUIRE(costs.totals.gpu_watts == 8 * 500.0);
  REQUIRE(costs.totals.gpu_idle_watts == 8 * 80.0);
}

}  // namespace trainyard
