// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/steps/recommender_report.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "support/recommenders.h"

namespace trainyard {
namespace {

struct Rendered {
  RecommenderWorkload workload = recommender_workload(shipped_recommender("dlrm-dcnv2"), 65536);
  RecommenderRun run = run_recommender(shipped_cluster("dgx-h100", {.nodes = 1}), workload,
                                       recommender_software("hugectr"), plain_tables());

  [[nodiscard]] std::string as(Format format) const {
    return render(document_of({.setup = {.cluster = "DGX", .workload = "dlrm", .gpus = 8},
                               .workload = &workload,
                               .run = &run,
                               .notes = {"a note"}}),
                  format);
  }
};

}  // namespace

TEST_CASE("the report of a recommendation model's step counts samples", "[recommender]") {
  const Rendered rendered;
  const nlohmann::json json = nlohmann::json::parse(rendered.as(Format::Json));
  std::int64_t sum = 0;
  for (const auto& part : json["breakdown_ps"]) {
    sum += part.get<std::int64_t>();
  }
  REQUIRE(sum == json["step_time_ps"].get<std::int64_t>());
  const double seconds = json["step_time_s"].get<double>();
  REQUIRE(json["samples_per_s"].get<double>() == Approx(65536.0 / seconds));
  REQUIRE(json["model_tflops_per_gpu"].get<double>() ==
          Approx(65536.0 / 8.0 * training_flops(rendered.workload.model) / seconds / 1e12));
  REQUIRE(json["mfu"].get<double>() == Approx(json["model_tflops_per_gpu"].get<double>() /
                                              json["mfu_peak_tflops"].get<double>()));
  double memory = 0.0;
  for (const auto& part : json["memory_peak_by_class_gib"]) {
    memory += part.get<double>();
  }
  REQUIRE(memory == Approx(json["memory_peak_gib"].get<double>()));
  REQUIRE(json["tables"]["of_rank"].size() == 8);
  REQUIRE_FALSE(json.contains("tokens_per_s"));
  for (const char* const key : {"lookups", "updates", "vectors", "data", "interaction"}) {
    REQUIRE(json["breakdown_s"].contains(key));
  }
}

TEST_CASE("text and CSV of a recommendation model's step say the same", "[recommender]") {
  const Rendered rendered;
  const std::string text = rendered.as(Format::Table);
  REQUIRE(text.find("# 26 tables of 2.614e+10 parameters: 26 sharded, 0 split, 0 replicated; "
                    "MLPs of 1.604e+07\n") != std::string::npos);
  REQUIRE(text.find("# Note: a note\n") != std::string::npos);
  const std::string csv = rendered.as(Format::Csv);
  REQUIRE(
      csv.rfind("cluster,workload,gpus,step_time_s,step_time_low_s,step_time_high_s,samples_per_s,",
                0) == 0);
}

}  // namespace trainyard
