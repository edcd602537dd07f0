// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/step/step_convolutional.h"

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

std::vector<std::string> with_images(std::vector<std::string> arguments) {
  const std::string configs = source_dir().string() + "/configs/";
  arguments.insert(arguments.end(), {"--cluster", configs + "clusters/dgx-1.yaml", "--nodes", "1",
                                     "--workload", configs + "workloads/resnet-50.yaml"});
  return arguments;
}

std::string images_output(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  REQUIRE(run_command(step_command(), with_images(arguments), out) == 0);
  return out.str();
}

std::string images_error(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  try {
    (void)run_command(step_command(), with_images(arguments), out);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a convolutional network runs as a step, with an interval", "[convolutional]") {
  const auto json = nlohmann::json::parse(
      images_output({"--format", "json", "--set", "batch.micro=64", "--set", "precision=fp32"}));
  REQUIRE(json["kind"] == "convolutional");
  REQUIRE(json["gpus"] == 8);
  REQUIRE(json["plan"]["micro_batch"] == 64);
  REQUIRE(json["precision"] == "fp32");
  REQUIRE(json["step_time_low_s"].get<double>() < json["step_time_s"].get<double>());
  const auto noisy =
      nlohmann::json::parse(images_output({"--format", "json", "--slow-rank", "2=1.5"}));
  REQUIRE(noisy["step_time_low_s"].is_null());
}

// A ring sends 2 (n - 1) / n of the gradients from each of n ranks, 4 bytes for each parameter.
TEST_CASE("the sums of a convolutional network's gradients are counted on links",
          "[convolutional][volumes]") {
  const auto json = nlohmann::json::parse(
      images_output({"--format", "json", "--runtime", "plain", "--set", "precision=fp32"}));
  double bytes = 0.0;
  const auto& tiers = json["volumes"];
  for (const auto& tier : tiers) {
    bytes += tier["bytes"].get<double>();
  }
  REQUIRE(tiers.size() == 1);  // NVLink alone: each hop of the rings is one link.
  REQUIRE(bytes == Approx(json["network"]["parameters"].get<double>() * 4.0 * 14.0).epsilon(0.001));
  REQUIRE(json["volumes_by_purpose"]["nvlink"]["data"].get<double>() == Approx(bytes));
}

TEST_CASE("the time line of a convolutional network has its layers and buckets",
          "[convolutional]") {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "trace.json").string();
  (void)images_output({"--trace", file});
  const std::string text = read_text_file(file);
  for (const char* const name :
       {"\"block 0: 7 x 7 of 64\"", "\"block 7: 1 x 1 of 1000 backward\"", "\"bucket 4\""}) {
    INFO(name);
    REQUIRE(text.find(name) != std::string::npos);
  }
}

TEST_CASE("options that a convolutional network has no use for are refused", "[convolutional]") {
  REQUIRE(images_error({"--memory", "x"}) ==
          "--memory: expected a workload of a transformer, found one of a convolutional network");
  REQUIRE(images_error({"--method", "closed-forms"}).find("no closed forms") != std::string::npos);
  REQUIRE(images_error({"--set", "precision=bf16"}).find("precision bf16") != std::string::npos);
  REQUIRE(images_error({"--set", "plan.tensor=2"}).find("plan") != std::string::npos);
  REQUIRE(images_error({"--slow-rank", "8=1.5"}).find("expected a rank from 0 to 7, found 8") !=
          std::string::npos);
}

}  // namespace trainyard
