// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/commands.h"

#include <nlohmann/json.hpp>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "sim/config_error.h"

namespace trainyard {
namespace {

std::string refusal_of_explain(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  try {
    (void)run_command(explain_command(), arguments, out);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

nlohmann::json explained_step(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--format", "json"});
  std::ostringstream out;
  REQUIRE(run_command(explain_step(), arguments, out) == 0);
  return nlohmann::json::parse(out.str());
}

std::map<std::string, double> elasticities_step(const nlohmann::json& json) {
  std::map<std::string, double> values;
  for (const auto& resource : json["times"][0]["resources"]) {
    values[resource["resource"]] = resource["elasticity"].get<double>();
  }
  return values;
}

std::string refusal_of_step(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  try {
    (void)run_command(explain_step(), arguments, out);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("explain says what it can explain", "[explain-command]") {
  std::ostringstream out;
  REQUIRE(run_command(explain_command(), std::vector<std::string>{"--help"}, out) == 0);
  REQUIRE(out.str().find("trainyard explain collective OP") != std::string::npos);
  REQUIRE(refusal_of_explain({}) ==
          "explain: expected step or collective, found none; see trainyard explain --help");
  REQUIRE(refusal_of_explain({"stap"}) ==
          "explain: expected step or collective, found \"stap\"; did you mean \"step\"?");
}

TEST_CASE("a step of large products follows the FLOP/s of its GPUs", "[explain-step]") {
  const auto json =
      explained_step({"--cluster", "dgx-a100", "--nodes", "8", "--workload", "gpt-3-175b", "--set",
                      "plan.pipeline=8", "--set", "batch.micro=4", "--set", "batch.global=128"});
  const auto values = elasticities_step(json);
  REQUIRE(values.at("flops") > 0.7);
  REQUIRE(values.at("socket") == 0.0);
  REQUIRE(json["times"][0]["sum_of_elasticities"].get<double>() == Approx(1.0).margin(0.06));
  REQUIRE(json["times"][0]["all_at_once"]["elasticity"].get<double>() == Approx(1.0).margin(1e-3));
  REQUIRE(json["times"][0]["links"].size() > 1);
  REQUIRE(!json["not_modelled"].empty());
}

TEST_CASE("improvements of a step are in order, and settings are among them", "[explain-step]") {
  const auto json =
      explained_step({"--cluster", "dgx-a100", "--nodes", "8", "--workload", "gpt-3-175b", "--set",
                      "plan.pipeline=8", "--set", "batch.global=64"});
  const auto& improvements = json["times"][0]["improvements"];
  REQUIRE(improvements.size() > 3);
  std::int64_t last = 0;
  bool has_setting = false;
  for (const auto& each : improvements) {
    REQUIRE(each["time_ps"].get<std::int64_t>() >= last);
    REQUIRE(each["change"].get<double>() < 0.0);
    last = each["time_ps"].get<std::int64_t>();
    has_setting = has_setting || each["kind"] == "setting";
  }
  REQUIRE(has_setting);
}

// Convolutions are products of matrices, look-ups are reads: with all rates higher and all costs
// shorter by a factor, the step is.
TEST_CASE("networks and recommendation models are explained as other steps are",
          "[explain-step][long]") {
  const auto images = explained_step(
      {"--cluster", "dgx-1", "--workload", "resnet-50", "--set", "overlap.data=false"});
  const auto of_images = elasticities_step(images);
  REQUIRE(of_images.at("flops") > 0.2);
  REQUIRE(of_images.at("gpu_memory") > 0.1);
  REQUIRE(images["times"][0]["all_at_once"]["elasticity"].get<double>() ==
          Approx(1.0).margin(0.01));
  REQUIRE(images["times"][0]["improvements"].dump().find("overlap.data: true") !=
          std::string::npos);
  REQUIRE(!images["times"][0]["links"].empty());
  const auto tables = explained_step({"--cluster", "dgx-h100", "--workload", "dlrm-dcnv2"});
  REQUIRE(elasticities_step(tables).at("nvlink") > 0.0);
  REQUIRE(tables["times"][0]["all_at_once"]["elasticity"].get<double>() ==
          Approx(1.0).margin(0.01));
}

TEST_CASE("explain refuses what belongs to the step", "[explain-step]") {
  REQUIRE(
      refusal_of_step({"--cluster", "dgx-h100", "--workload", "gpt-3-175b", "--trace", "x.json"}) ==
      "explain: unknown option \"--trace\"; see trainyard explain --help");
  REQUIRE(
      refusal_of_step({"--cluster", "dgx-h100", "--workload", "gpt-3-175b", "--prices", "none"}) ==
      "explain: unknown option \"--prices\"; see trainyard explain --help");
  REQUIRE(refusal_of_step({"--cluster", "dgx-h100"}) ==
          "explain: expected --workload or --model, found none; see trainyard explain --help");
}

}  // namespace trainyard
