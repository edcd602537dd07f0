// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/training_budgets.h"

#include <cstddef>
#include <map>
#include <string>

namespace trainyard {
namespace {

void add(const std::string& kind, std::size_t rows, double median, double p90,
         std::map<std::string, double>& figures) {
  if (rows > 0) {
    figures["median_error_" + kind] = median;
    figures["p90_error_" + kind] = p90;
  }
}

}  // namespace

Budgets seen_budgets(const TrainingScore& score) {
  Budgets seen;
  auto& all = seen["all"];
  add("dense", score.dense.rows, score.dense.median, score.dense.p90, all);
  add("moe", score.experts.rows, score.experts.median, score.experts.p90, all);
  add("memory", score.memory.rows, score.memory.median, score.memory.p90, all);
  all["predicted"] = static_cast<double>(score.predicted());
  for (const SourceScore& source : score.sources) {
    if (source.steps.empty()) {
      continue;
    }
    auto& figures = seen[source.name + " " + source.generation];
    add("dense", source.dense.rows, source.dense.median, source.dense.p90, figures);
    add("moe", source.experts.rows, source.experts.median, source.experts.p90, figures);
    figures["predicted"] = static_cast<double>(source.steps.size());
  }
  for (const MemoryScore& source : score.memory_sources) {
    auto& figures = seen["memory " + source.name];
    add("memory", source.errors.rows, source.errors.median, source.errors.p90, figures);
  }
  return seen;
}

}  // namespace trainyard
