// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_training.h"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/common.h"
#include "cli/options.h"
#include "sim/config.h"

namespace trainyard {
namespace {

bool is_wanted(const TrainingValidationRequest& request, const TrainingCase& item) {
  return request.only.empty() || std::ranges::any_of(request.only, [&](const std::string& text) {
           return item.generation == text || item.source.find(text) != std::string::npos ||
                  item.name.find(text) != std::string::npos;
         });
}

}  // namespace

bool is_training_case(const std::filesystem::path& file, const std::filesystem::path& root) {
  ConfigDocument document = ConfigDocument::load(file);
  if (!document.root().is_map()) {
    return false;
  }
  const std::optional<ConfigNode> reference = document.root().optional("reference");
  if (!reference || !reference->is_scalar()) {
    return false;
  }
  const std::string name = reference->as_string();
  for (const std::filesystem::path& table : {file.parent_path() / name, root / name}) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(table, ignored)) {
      ConfigDocument measured = ConfigDocument::load(table);
      return measured.root().is_map() && measured.root().optional("rows").has_value() &&
             !measured.root().optional("test").has_value();
    }
  }
  return false;
}

TrainingReport validate_training(const TrainingValidationRequest& request,
                                 const CaseScorer& score) {
  ModelFolder models(request.root / "configs" / "workloads" / "models");
  std::vector<LoadedTrainingCase> cases;
  for (const std::filesystem::path& file : request.files) {
    LoadedTrainingCase loaded = load_training_case(file, request.root, models);
    if (is_wanted(request, loaded.item)) {
      cases.push_back(std::move(loaded));
    }
  }
  if (cases.empty()) {
    fail_option("only", "a generation of GPUs, or part of the name of a source or case",
                request.only.front());
  }
  std::vector<SourceScore> scores(cases.size());
  run_tasks(cases.size(), request.threads, "validate",
            [&](std::size_t index) { scores[index] = score(cases[index]); });
  return {.score = score_of(std::move(scores)), .notes = {}};
}

SourceScore score_with_steps(const LoadedTrainingCase& loaded, const StepConstants& constants) {
  StepPrediction prediction(constants);
  return score_case(loaded, [&](const TrainingCase& item, const TrainingRun& run) {
    return prediction.predict(item, run).time.seconds();
  });
}

}  // namespace trainyard
