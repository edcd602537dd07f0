// SPDX-License-Identifier: Apache-2.0
// Recommendation models and their training for tests.
#pragma once

#include <string>

#include "parallelism/run/recommender_run.h"
#include "support/built_clusters.h"
#include "support/step_rates.h"

namespace trainyard {

inline RecommenderModel shipped_recommender(const std::string& name) {
  return load_recommender(kConfigsFolder / "workloads/recommenders" / (name + ".yaml"));
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

// With links and latencies only, each call alone, unless `tables` says otherwise.
inline StepTables plain_tables() {
  return {.catalogue = shipped_catalogue(),
          .rates = shipped_rates(),
          .fidelity = Fidelity::Flow,
          .method = StepMethod::Graph};
}

}  // namespace trainyard
