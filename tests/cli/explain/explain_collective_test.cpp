// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/commands.h"

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/config_error.h"

namespace trainyard {
namespace {

std::string output_of(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  REQUIRE(run_command(explain_collective(), arguments, out) == 0);
  return out.str();
}

nlohmann::json explained(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--format", "json"});
  return nlohmann::json::parse(output_of(arguments));
}

std::map<std::string, double> elasticities(const nlohmann::json& time) {
  std::map<std::string, double> values;
  for (const auto& resource : time["resources"]) {
    values[resource["resource"]] = resource["elasticity"].get<double>();
  }
  return values;
}

std::string refusal_of(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  try {
    (void)run_command(explain_collective(), arguments, out);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("NCCL's time is all of rates and latencies, small sizes of latencies alone",
          "[explain-collective]") {
  const auto json = explained({"all_reduce", "--cluster", "dgx-h100", "--nodes", "4", "--runtime",
                               "nccl", "-b", "256K", "-e", "256M", "-f", "1024"});
  REQUIRE(json["times"].size() == 2);
  for (const auto& time : json["times"]) {
    REQUIRE(time["all_at_once"]["elasticity"].get<double>() == Approx(1.0).margin(1e-3));
    REQUIRE(time["sum_of_elasticities"].get<double>() == Approx(1.0).margin(0.06));
  }
  const auto small = elasticities(json["times"][0]);
  const auto large = elasticities(json["times"][1]);
  REQUIRE(small.at("nic") < 0.05);
  REQUIRE(small.at("kernel_latency") > 0.4);
  REQUIRE(large.at("nic") > 0.5);
  REQUIRE(large.at("kernel_latency") < small.at("kernel_latency"));
  REQUIRE(!json["times"][1]["links"].empty());
}

TEST_CASE("an oversubscribed fabric follows its upper tier", "[explain-collective]") {
  const auto json = explained({"alltoall", "--cluster", "hgx-h100-clos", "--runtime", "plain",
                               "--nodes", "4", "--set", "fabric.nodes_per_leaf=2", "--set",
                               "fabric.oversubscription=8", "--algo", "direct", "-e", "64M"});
  const auto values = elasticities(json["times"][0]);
  REQUIRE(values.at("tier_0") > 0.9);
  REQUIRE(values.at("nic") < 0.1);
}

TEST_CASE("NCCL's alltoall keeps to its rails, so that the upper tier carries nothing",
          "[explain-collective]") {
  const auto json = explained(
      {"alltoall", "--cluster", "dgx-h100", "--nodes", "2", "--runtime", "nccl", "-e", "64M"});
  for (const auto& links : json["times"][0]["links"]) {
    REQUIRE(links["resource"] != "tier_0");
  }
  REQUIRE(elasticities(json["times"][0]).at("tier_0") == 0.0);
}

TEST_CASE("explained times do not depend on threads", "[explain-collective]") {
  const std::vector<std::string> arguments{"all_gather", "--cluster", "dgx-a100", "--runtime",
                                           "plain",      "--nodes",   "2"};
  std::vector<std::string> with_threads = arguments;
  with_threads.insert(with_threads.end(), {"--threads", "3"});
  REQUIRE(output_of(arguments) == output_of(with_threads));
}

TEST_CASE("explain wants one algorithm and no other results", "[explain-collective]") {
  REQUIRE(refusal_of({"all_reduce", "--cluster", "dgx-h100", "--runtime", "plain", "--algo",
                      "ring,tree"}) == "--algo: expected one algorithm to explain, found 2");
  REQUIRE(refusal_of({"all_reduce", "--cluster", "dgx-h100", "--runtime", "nccl", "--algo",
                      "ring,tree"}) == "--algo, --proto: expected one way to explain, found 2");
  REQUIRE(refusal_of({"all_reduce", "--cluster", "dgx-h100", "--plot", "x.svg"}) ==
          "explain: unknown option \"--plot\"; did you mean \"--root\"?");
  REQUIRE(refusal_of({"all_reduce", "--cluster", "dgx-h100", "--runtime", "plain", "--nodes", "1",
                      "--gpus-per-node", "1", "--algo", "ring"}) ==
          "explain: expected something that takes time, found none: nothing is sent");
}

}  // namespace trainyard
