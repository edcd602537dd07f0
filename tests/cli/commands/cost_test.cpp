// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/commands.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/program.h"

namespace trainyard {
namespace {

std::string cost_of(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{
      "--cluster", (kConfigsFolder / "clusters/dgx-h100.yaml").string(), "--nodes", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::ostringstream out;
  REQUIRE(run_command(cost_command(), arguments, out) == 0);
  return out.str();
}

}  // namespace

TEST_CASE("a cluster's power is that of the parts that say it", "[cli][cost]") {
  const std::string text = cost_of({});
  REQUIRE(text.find("power                          5.60 kW at the limits") != std::string::npos);
  REQUIRE(text.find("not in the power, as nobody says their watts: ") != std::string::npos);
  REQUIRE(text.find("ConnectX-7") != std::string::npos);
  REQUIRE(text.find("price   ") == std::string::npos);
}

TEST_CASE("a token costs its share of parts and energy", "[cli][cost]") {
  const ScratchFolder folder;
  const std::string prices =
      folder
          .write("prices.yaml",
                 "currency: USD\nkwh: 0.1\nyears: 2\nparts: {H100-SXM: {price: 20000}}\n")
          .string();
  const auto json = nlohmann::json::parse(
      cost_of({"--prices", prices, "--workload",
               (kConfigsFolder / "workloads/llama-3-8b.yaml").string(), "--format", "json"}));
  const auto& totals = json["totals"];
  const double step = totals["step_time_s"];
  const double tokens = 16.0 * 8192.0;
  // GPUs without idle power count at their limit.
  const double joules = 8 * 700.0 * step;
  REQUIRE(totals["energy_of_step_kj"] == Approx(joules / 1e3));
  REQUIRE(totals["energy_of_million_tokens_kwh"] == Approx(joules / 3.6e6 / tokens * 1e6));
  const double parts = 8 * 20'000.0 / (2 * 365.25 * 86'400.0) * step / tokens * 1e6;
  REQUIRE(totals["price_of_million_tokens"] == Approx(parts + 0.1 * joules / 3.6e6 / tokens * 1e6));
  REQUIRE(totals["price"] == 160'000.0);
  REQUIRE(totals["energy_of_token_j"] == Approx(joules / tokens));
  REQUIRE(totals["price_of_trillion_tokens"] ==
          Approx(1e6 * totals["price_of_million_tokens"].get<double>()));
}

TEST_CASE("nothing is priced that has no price", "[cli][cost]") {
  const auto json = nlohmann::json::parse(cost_of({"--format", "json"}));
  REQUIRE(json["totals"]["price"].is_null());
  REQUIRE(json["totals"]["step_time_s"].is_null());
  REQUIRE(json["parts"][0]["part"] == "H100-SXM");
  REQUIRE(json["parts"][0]["all_price"].is_null());
  REQUIRE(cost_of({"--format", "csv"}).starts_with("cluster,power_kw,price,currency,"));
}

}  // namespace trainyard
