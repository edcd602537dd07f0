// SPDX-License-Identifier: Apache-2.0
// trainyard validate on measured training steps.
#include "cli/validate/validate_training.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "calibration/predict/validation_case.h"
#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/catch.h"
#include "support/paths.h"

namespace trainyard {
namespace {

const std::filesystem::path kRoot = source_dir();
const std::filesystem::path kCases = kRoot / "validation" / "cases";

TrainingValidationRequest request_for(const std::vector<std::string>& only) {
  return {.files = validation_case_files(kCases / "training"),
          .root = kRoot,
          .only = only,
          .threads = 1};
}

std::string output_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--cases", (kCases / "training").string()});
  std::ostringstream out;
  REQUIRE(run_command(validate_command(), arguments, out) == 0);
  return out.str();
}

}  // namespace

TEST_CASE("cases of training steps are known by their table", "[training]") {
  REQUIRE(is_training_case(kCases / "training" / "bloom.yaml", kRoot));
  REQUIRE_FALSE(is_training_case(validation_case_files(kCases / "nccl").front(), kRoot));
}

TEST_CASE("validate predicts the steps of a source", "[training]") {
  const auto json = nlohmann::json::parse(output_of({"--format", "json", "--only", "zero_bubble"}));
  REQUIRE(json["summary"]["predicted"] == 57);
  REQUIRE(json["summary"]["no_step"] == 9);
  REQUIRE(json["sources"][0]["median_error_dense"].get<double>() < 0.10);
  REQUIRE(output_of({"--only", "zero_bubble"}) ==
          output_of({"--only", "zero_bubble", "--threads", "1"}));
}

TEST_CASE("validate reports the coverage of every training row", "[training]") {
  const TrainingReport report = validate_training(
      request_for({}),
      [](const LoadedTrainingCase& loaded) { return score_case(loaded, StepPredictor()); });
  const auto json = nlohmann::json::parse(render(report, Format::Json));
  const auto& summary = json["summary"];
  REQUIRE(summary["row_count"] == 2251);
  int rows = 0;
  for (const char* const status :
       {"complete", "assumed", "missing", "clash", "excluded", "no_step"}) {
    rows += summary[status].get<int>();
  }
  REQUIRE(rows == 2251);
  REQUIRE(summary["with_plan"] == summary["complete"].get<int>() + summary["assumed"].get<int>());
  REQUIRE(summary["missing_fields"]["parallel.tp"].get<int>() > 0);
  for (const char* const key : {"median_error_dense", "p90_error_dense", "bias_dense",
                                "median_error_moe", "p90_error_moe", "bias_moe"}) {
    REQUIRE(summary.contains(key));
  }
}

TEST_CASE("validate scores steps that are predicted, source by source", "[training]") {
  const TrainingReport report = validate_training(
      request_for({"korthikanti", "simumax"}), [](const LoadedTrainingCase& loaded) {
        const double factor = loaded.item.source == "simumax_b200" ? 2.0 : 1.0;
        return score_case(loaded, [factor](const TrainingCase&, const TrainingRun& run) {
          return PredictedStep{.seconds = factor * run.measured_s};
        });
      });
  const auto json = nlohmann::json::parse(render(report, Format::Json));
  REQUIRE(json["sources"].size() == 2);
  REQUIRE(json["sources"][0]["source"] == "korthikanti_2022");
  REQUIRE(json["sources"][0]["rows_dense"] == 4);
  REQUIRE(json["sources"][0]["median_error_dense"] == 0.0);
  REQUIRE(json["sources"][1]["rows_moe"] == 6);
  REQUIRE(json["sources"][1]["bias_moe"].get<double>() == Approx(0.6931).margin(1e-4));
  REQUIRE(json["summary"]["median_error_dense"].get<double>() == Approx(0.3466).margin(1e-4));
  REQUIRE(json["summary"]["sources_dense"] == 2);
  REQUIRE(json["generations"].size() == 2);
}

TEST_CASE("each half of the sources is predicted with constants of the other", "[training][long]") {
  const auto json = nlohmann::json::parse(
      output_of({"--format", "json", "--out-of-source", "--only", "zero_bubble", "--only",
                 "korthikanti", "--only", "nanotron"}));
  REQUIRE(json["summary"]["row_count"] == 66 + 11 + 19);
  REQUIRE(json["summary"]["sources_dense"] == 2);
  REQUIRE(json["summary"]["median_error_dense"].get<double>() < 0.15);
  REQUIRE(json["with_files"]["sources_dense"] == 2);
  REQUIRE(json["fits"].size() == 2);
  // The half b is fitted first, for a.
  REQUIRE(json["fits"][0]["sources"] == nlohmann::json{"zero_bubble"});
  REQUIRE(json["fits"][1]["sources"] == nlohmann::json{"korthikanti_2022"});
  REQUIRE(json["fits"][0]["constants"][0]["name"] == "ampere.gemm");
}

TEST_CASE("each generation is predicted with the rates of the others", "[training][long]") {
  const auto json = nlohmann::json::parse(
      output_of({"--format", "json", "--leave-one-out", "--only", "fms_fsdp"}));
  REQUIRE(json["summary"]["sources_dense"] == 2);
  REQUIRE(json["summary"]["median_error_dense"] != json["with_files"]["median_error_dense"]);
  const auto& coverage = json["coverage"]["of generations, in those that the others give"];
  REQUIRE(coverage[0]["class"] == "GPUs: a100");
  REQUIRE(coverage[0]["rows"] == 6);
}

TEST_CASE("validate predicts steps by the graph too", "[training]") {
  const auto rows = [](const std::vector<std::string>& arguments) {
    return nlohmann::json::parse(output_of(arguments))["sources"][0]["rows"];
  };
  const auto closed = rows({"--format", "json", "--only", "fms_fsdp"});
  const auto graph = rows({"--format", "json", "--only", "fms_fsdp", "--method", "graph"});
  REQUIRE(closed.size() == graph.size());
  REQUIRE(closed != graph);
  for (std::size_t row = 0; row < closed.size(); ++row) {
    if (closed[row].contains("predicted_s")) {
      REQUIRE(graph[row]["predicted_s"].get<double>() ==
              Approx(closed[row]["predicted_s"].get<double>()).epsilon(0.2));
    }
  }
}

TEST_CASE("a half without the other is noted", "[training]") {
  const auto json = nlohmann::json::parse(
      output_of({"--format", "json", "--out-of-source", "--only", "korthikanti"}));
  REQUIRE(json["summary"]["predicted"] == 0);
  REQUIRE(json["summary"]["notes"][0] ==
          "a100: sources of one half alone, not scored out of source");
}

TEST_CASE("options for collectives are refused with training cases", "[training]") {
  std::ostringstream out;
  const std::string folder = (kCases / "training").string();
  const std::vector<std::string> arguments{"--leave-one-out", "--ledger", "ledger.csv", "--cases",
                                           folder};
  REQUIRE_THROWS_WITH(run_command(validate_command(), arguments, out),
                      "--ledger: expected cases of collectives, found training steps");
  const std::vector<std::string> recorded{"--refit", "--record-budgets", "--cases", folder};
  REQUIRE_THROWS_WITH(run_command(validate_command(), recorded, out),
                      "--record-budgets: expected the constants of the files, found a fit");
  const std::vector<std::string> fitted{"--refit", "--method", "graph", "--cases", folder};
  REQUIRE_THROWS_WITH(run_command(validate_command(), fitted, out),
                      Catch::Contains("--method: expected closed-forms"));
  const std::vector<std::string> collectives{"--method", "graph"};
  REQUIRE_THROWS_WITH(run_command(validate_command(), collectives, out),
                      "--method: expected cases of training steps, found collectives");
  REQUIRE_THROWS_AS(validate_training(request_for({"nothing-like-it"}), {}), ConfigError);
}

}  // namespace trainyard
