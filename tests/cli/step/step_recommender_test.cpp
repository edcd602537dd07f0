// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/step/step_recommender.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

const std::string kConfigs = source_dir().string() + "/configs/";

std::vector<std::string> with_files(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--cluster", kConfigs + "clusters/dgx-h100.yaml", "--nodes",
                                     "1", "--workload", kConfigs + "workloads/dlrm-dcnv2.yaml"});
  return arguments;
}

std::string output_of(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  REQUIRE(run_command(step_command(), with_files(arguments), out) == 0);
  return out.str();
}

std::string error_of(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  try {
    (void)run_command(step_command(), with_files(arguments), out);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a recommendation model runs as a step, by name of its kind", "[recommender]") {
  const auto json = nlohmann::json::parse(output_of({"--format", "json"}));
  REQUIRE(json["kind"] == "recommender");
  REQUIRE(json["gpus"] == 8);
  REQUIRE(json["plan"]["columns"] == 4);
  const auto split =
      nlohmann::json::parse(output_of({"--format", "json", "--set", "plan.split_rows=1000000"}));
  REQUIRE(split["tables"]["split"] == 6);
  REQUIRE(split["settings"] == nlohmann::json::array({"plan.split_rows=1000000"}));
}

TEST_CASE("the time line of a recommendation model has its streams", "[recommender]") {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "trace.json").string();
  (void)output_of({"--trace", file});
  const auto trace = nlohmann::json::parse(read_text_file(file));
  const std::string text = trace.dump();
  for (const char* const name : {"\"look up\"", "\"update tables\"", "\"gradients of vectors\"",
                                 "\"tables\"", "\"rank 7\""}) {
    INFO(name);
    REQUIRE(text.find(name) != std::string::npos);
  }
}

TEST_CASE("a recommendation model has an interval", "[recommender]") {
  const auto json = nlohmann::json::parse(output_of({"--format", "json"}));
  REQUIRE(json["step_time_low_s"].get<double>() < json["step_time_s"].get<double>());
  REQUIRE(json["step_time_high_s"].get<double>() > json["step_time_s"].get<double>());
  const auto noisy = nlohmann::json::parse(output_of({"--format", "json", "--slow-rank", "2=1.5"}));
  REQUIRE(noisy["step_time_low_s"].is_null());
}

TEST_CASE("options that a recommendation model has no use for are refused", "[recommender]") {
  REQUIRE(error_of({"--memory", "x"}) ==
          "--memory: expected a workload of a transformer, found one of a recommendation model");
  REQUIRE(error_of({"--method", "closed-forms"}).find("no closed forms") != std::string::npos);
  REQUIRE(error_of({"--traffic", "shared"}).find("expected --runtime plain") != std::string::npos);
  REQUIRE(error_of({"--slow-rank", "8=1.5"}).find("expected a rank from 0 to 7, found 8") !=
          std::string::npos);
  REQUIRE(error_of({"--set", "batch.global=65537"}) ==
          "batch.global: expected a multiple of the number of GPUs, found 65537 and 8");
}

}  // namespace trainyard
