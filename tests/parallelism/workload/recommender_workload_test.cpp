// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/workload/recommender_workload.h"

#include <filesystem>
#include <string>
#include <vector>

#include "parallelism/workload/workload.h"
#include "sim/config_error.h"
#include "support/program.h"
#include "support/recommenders.h"

namespace trainyard {
namespace {

const std::filesystem::path kModels = kConfigsFolder / "workloads/recommenders";
const std::filesystem::path kShipped = kConfigsFolder / "workloads/dlrm-dcnv2.yaml";

std::string error_of(const std::vector<std::string>& settings) {
  try {
    (void)load_recommender_workload(kShipped, kModels, settings);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the shipped recommendation workload is that of MLPerf", "[recommender]") {
  REQUIRE(is_workload_of(kShipped, "recommender"));
  REQUIRE_FALSE(is_workload_of(kConfigsFolder / "workloads/gpt-3-175b.yaml", "recommender"));
  const RecommenderWorkload workload = load_recommender_workload(kShipped, kModels);
  REQUIRE(workload.model.name == "dlrm-dcnv2");
  REQUIRE(workload.batch == 65536);
  REQUIRE(workload.table_optimizer == RecommenderOptimizer::Adagrad);
  REQUIRE_FALSE(workload.overlap_data.has_value());
}

TEST_CASE("settings of a recommendation workload are read, and mistakes give one line",
          "[recommender]") {
  const RecommenderWorkload changed = load_recommender_workload(
      kShipped, kModels,
      {"model=dlrm-small", "precision=tf32", "plan={replicated_rows: 100, split_rows: 1000000}",
       "overlap={tables: false}", "optimizer.tables=rowwise-adagrad"});
  REQUIRE(changed.model.name == "dlrm-small");
  REQUIRE(changed.precision == Precision::Tf32);
  REQUIRE(changed.rules.replicated_rows == 100);
  REQUIRE(changed.rules.split_rows == 1'000'000);
  REQUIRE(changed.rules.columns == 1);
  REQUIRE(changed.overlap_tables == false);
  REQUIRE(changed.table_optimizer == RecommenderOptimizer::RowwiseAdagrad);

  REQUIRE(error_of({"plan.columns=5"}) ==
          "--set plan.columns=5: plan.columns: expected a divisor of the width, 128, found \"5\"");
  REQUIRE(error_of({"plan={replicated_rows: 10, split_rows: 10}"})
              .find("expected more rows than replicated_rows, 10, or 0, found \"10\"") !=
          std::string::npos);
  REQUIRE(error_of({"optimizer.dense=rowwise-adagrad"}).find("as MLPs have no rows to look up") !=
          std::string::npos);
  REQUIRE(error_of({"plan.tensor=2"}).find("unknown key \"tensor\"") != std::string::npos);
  REQUIRE(error_of({"batch.global=0"}).find("batch.global") != std::string::npos);
  REQUIRE(error_of({"precision=fp8"}).find("one of fp16, bf16, tf32, fp32") != std::string::npos);
}

TEST_CASE("commands for transformers refuse a recommendation model", "[recommender]") {
  std::string error;
  try {
    (void)load_workload(kShipped, kModels);
  } catch (const ConfigError& problem) {
    error = problem.what();
  }
  REQUIRE(error.find("kind: expected transformer, as only `trainyard step` runs the other "
                     "kinds, found \"recommender\"") != std::string::npos);
}

TEST_CASE("software for recommendation models is read strictly", "[recommender]") {
  for (const char* const name : {"hugectr", "torchrec", "tensorflow"}) {
    REQUIRE_FALSE(recommender_software(name).fusion.empty());
  }
  const ScratchFolder folder;
  const std::string good =
      read_text_file(kConfigsFolder / "software/recommenders/torchrec.yaml") + "speed: 2\n";
  std::string error;
  try {
    (void)RecommenderSoftware::load(folder.write("bad.yaml", good));
  } catch (const ConfigError& problem) {
    error = problem.what();
  }
  REQUIRE(error.find("unknown key \"speed\"") != std::string::npos);
}

}  // namespace trainyard
