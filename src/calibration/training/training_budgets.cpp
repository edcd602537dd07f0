// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/training_budgets.h"

#include <map>
#include <string>

namespace trainyard {
namespace {

void add(const std::string& kind, const StepErrors& errors,
         std::map<std::string, double>& figures) {
  if (errors.rows > 0) {
    figures["median_error_" + kind] = errors.median;
    figures["p90_error_" + kind] = errors.p90;
  }
}

}  // namespace

Budgets seen_budgets(const TrainingScore& score) {
  Budgets seen;
  auto& all = seen["all"];
  add("dense", score.dense, all);
  add("moe", score.experts, all);
  add("memory", score.memory, all);
  all["predicted"] = static_cast<double>(score.predicted());
  for (const SourceScore& source : score.sources) {
    if (source.steps.empty()) {
      continue;
    }
    auto& figures = seen[source.name + " " + source.generation];
    add("dense", source.dense, figures);
    add("moe", source.experts, figures);
    figures["predicted"] = static_cast<double>(source.steps.size());
  }
  for (const MemoryScore& source : score.memory_sources) {
    auto& figures = seen["memory " + source.name];
    add("memory", source.errors, figures);
  }
  return seen;
}

}  // namespace trainyard
