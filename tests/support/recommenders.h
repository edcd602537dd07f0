// SPDX-License-Identifier: Apache-2.0
// Recommendation models and their training for tests.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "parallelism/run/recommender_run.h"
#include "sim/fields.h"
#include "support/built_clusters.h"
#include "support/step_rates.h"

namespace trainyard {

inline RecommenderModel shipped_recommender(const std::string& name) {
  ConfigDocument document =
      ConfigDocument::load(kConfigsFolder / "workloads/recommenders" / (name + ".yaml"));
  RecommenderModel model;
  model.name = name;
  read_fields(document.root(), model, recommender_fields);
  document.finish();
  return model;
}

inline RecommenderSoftware recommender_software(const std::string& name) {
  return RecommenderSoftware::load(kConfigsFolder / "software/recommenders" / (name + ".yaml"));
}

// Three tables; MLPs of two layers.
inline RecommenderModel small_recommender() {
  return {.name = "small",
          .title = "Small",
          .dense_features = 16,
          .width = 16,
          .tables = {{.rows = 1000, .lookups = 2}, {.rows = 100}, {.rows = 10, .lookups = 3}},
          .bottom = {32, 16},
          .top = {32, 1}};
}

inline RecommenderWorkload recommender_workload(RecommenderModel model, std::int64_t batch) {
  return {.name = "test",
          .title = "Test",
          .model = std::move(model),
          .software = "none",
          .batch = batch,
          .rules = {}};
}

// A measured step of validation/recommenders.
struct MeasuredRecommender {
  std::string id;
  std::string cluster;
  std::int64_t gpus = 1;  // The row used so many of one server.
  std::string model;
  std::string software;
  Precision precision = Precision::Fp16;
  std::int64_t batch = 1;
  std::optional<SimTime> step = {};
  double samples_per_s = 0.0;  // Without a time of the step.
  bool is_fitted = false;
  double error = 0.0;  // ln of predicted over measured time, as recorded.
};

inline void measured_recommender_fields(Fields& fields, std::vector<MeasuredRecommender>& rows) {
  static constexpr std::array<std::string_view, 2> kNames{"fp16", "tf32"};
  const auto precision = [](const ConfigNode& node) {
    return node.as_choice(kNames) == 0 ? Precision::Fp16 : Precision::Tf32;
  };
  const auto row = [&](Fields& inner, MeasuredRecommender& one) {
    inner.required("id", one.id, Text{}, "Name of the row.");
    inner.required("source", std::ignore, Unread{}, "A key of `sources`.");
    inner.required("cluster", one.cluster, Text{}, "A file of `configs/clusters`.");
    inner.required("gpus", one.gpus, Whole{1, 8}, "GPUs of one server.");
    inner.required("model", one.model, Text{}, "A file of `configs/workloads/recommenders`.");
    inner.required("software", one.software, Text{}, "A file of `configs/software/recommenders`.");
    inner.required("precision", one.precision, Via{Choice{kNames}, precision}, "Precision.");
    inner.required("batch", one.batch, Whole{1, 1 << 30}, "Samples of a step.");
    const bool is_timed = inner.optional("step", one.step, Duration{}, "Time of a step.");
    inner.where(!is_timed, [&] {
      inner.required("samples_per_s", one.samples_per_s, Number{1.0, 1e9}, "Samples a second.");
    });
    inner.optional("fitted", one.is_fitted, Flag{}, "A constant was fitted to the row.");
    inner.required("error", one.error, Number{-1.0, 1.0}, "ln of predicted over measured time.");
  };
  fields.required("sources", std::ignore, Unread{}, "Citations by short keys.");
  fields.required("rows", rows, List{Group{row}}, "Measured steps.");
}

// With links and latencies only, each call alone, unless `tables` says otherwise.
inline StepTables plain_tables() {
  return {.rates = shipped_rates(), .fidelity = Fidelity::Flow, .method = StepMethod::Graph};
}

}  // namespace trainyard
