// SPDX-License-Identifier: Apache-2.0
#include "cli/validate/validate_training.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "cli/common/common.h"
#include "cli/common/options.h"
#include "sim/config.h"

namespace trainyard {
namespace {

bool is_wanted(const TrainingValidationRequest& request, const TrainingCase& item) {
  return request.only.empty() || std::ranges::any_of(request.only, [&](const std::string& text) {
           return item.generation == text || item.source.find(text) != std::string::npos ||
                  item.name.find(text) != std::string::npos;
         });
}

std::vector<LoadedTrainingCase> load_cases(const TrainingValidationRequest& request) {
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
  return cases;
}

TrainingReport score_cases(const TrainingValidationRequest& request,
                           const std::vector<LoadedTrainingCase>& cases, const CaseScorer& score) {
  std::vector<SourceScore> scores(cases.size());
  run_tasks(cases.size(), request.threads, "validate",
            [&](std::size_t index) { scores[index] = score(cases[index]); });
  return {.score = score_of(std::move(scores))};
}

std::map<std::string, std::vector<const LoadedTrainingCase*>> by_generation(
    const std::vector<LoadedTrainingCase>& cases) {
  std::map<std::string, std::vector<const LoadedTrainingCase*>> generations;
  for (const LoadedTrainingCase& one : cases) {
    if (one.item.half != TrainingHalf::None) {
      generations[one.item.generation].push_back(&one);
    }
  }
  return generations;
}

// Notes generations with nothing to be fitted to: --only may have left one half alone.
void note_lone_halves(const std::vector<LoadedTrainingCase>& cases, TrainingReport& report) {
  for (const auto& [generation, members] : by_generation(cases)) {
    const TrainingHalf first = members.front()->item.half;
    if (std::ranges::all_of(
            members, [first](const LoadedTrainingCase* one) { return one->item.half == first; })) {
      report.notes.push_back(generation + ": sources of one half alone, not scored out of source");
    }
  }
}

StepPredictor predictor_of(CasePredictions& predictions, const StepValues& values) {
  return [&predictions, values](const TrainingCase& item, const TrainingRun& run) {
    const StepTime step = predictions.predict(item, run, values);
    return PredictedStep{.seconds = step.time.seconds(), .waits_for_host = waits_for_host(step)};
  };
}

// Predicts each generation with the rates of the others, and makes intervals of how far that is
// off, and of how far sources are off that no constant was fitted to.
void leave_generations_out(const TrainingValidationRequest& request,
                           const std::vector<LoadedTrainingCase>& cases, const StepPriors& priors,
                           const StepConstants& constants, CasePredictions& predictions,
                           TrainingReport& report) {
  const TrainingScore halves =
      out_of_source_score(cases, [&](std::span<const LoadedTrainingCase* const> half) {
        return predictor_of(predictions, values_of(fit_steps(half, priors, predictions,
                                                             task_runner(request.threads, "fit")),
                                                   priors));
      });
  report.with_files = std::move(report.score);
  const StepPredictor predict =
      predictor_of(predictions, {.rates = constants.rates, .leaves_out_own = true});
  report.score = score_cases(request, cases, [&](const LoadedTrainingCase& loaded) {
                   return score_case(loaded, predict);
                 }).score;
  report.intervals = StepIntervals::of(halves.sources, report.score.sources);
  report.coverage = {
      {"of sources, in those that all others give", coverage_by_other_sources(halves.sources)},
      {"of generations, in those that the others give",
       coverage_by_other_generations(report.score.sources)}};
}

// Fits constants, predicts again, and keeps the score with the constants of the files beside it.
// The collectives of all cases are known by then.
void refit_steps(const TrainingValidationRequest& request,
                 const std::vector<LoadedTrainingCase>& cases, StepFitting fitting,
                 const StepPriors& priors, CasePredictions& predictions, TrainingReport& report) {
  const TaskRunner runner = task_runner(request.threads, "fit");
  const StepFit fit = [&](std::span<const LoadedTrainingCase* const> half) {
    report.fits.push_back(fit_steps(half, priors, predictions, runner));
    return predictor_of(predictions, values_of(report.fits.back(), priors));
  };
  report.with_files = std::move(report.score);
  std::vector<SourceScore> scores;
  for (const LoadedTrainingCase& one : cases) {  // Cases of no half still count as rows.
    if (one.item.half == TrainingHalf::None) {
      scores.push_back(score_case(one, {}));
    }
  }
  if (fitting == StepFitting::OutOfSource) {
    TrainingScore halves = out_of_source_score(cases, fit);
    std::move(halves.sources.begin(), halves.sources.end(), std::back_inserter(scores));
    report.score = score_of(std::move(scores));
    note_lone_halves(cases, report);
    return;
  }
  for (const auto& [generation, members] : by_generation(cases)) {
    const StepPredictor predict = fit(members);
    for (const LoadedTrainingCase* const one : members) {
      scores.push_back(score_case(*one, predict));
    }
  }
  report.score = score_of(std::move(scores));
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
  return score_cases(request, load_cases(request), score);
}

TrainingReport validate_steps(const TrainingValidationRequest& request,
                              const StepConstants& constants, StepFitting fitting,
                              const std::filesystem::path& priors) {
  const std::vector<LoadedTrainingCase> cases = load_cases(request);
  CasePredictions predictions(constants, request.method);
  const StepPredictor shipped = predictor_of(predictions, {.rates = constants.rates});
  TrainingReport report = score_cases(request, cases, [&](const LoadedTrainingCase& loaded) {
    SourceScore source = score_case(loaded, shipped);
    source.is_measured = constants.are_measured(loaded);
    return source;
  });
  if (fitting == StepFitting::LeaveOneOut) {
    leave_generations_out(request, cases, StepPriors::load(priors, constants.rates), constants,
                          predictions, report);
  } else if (fitting != StepFitting::None) {
    refit_steps(request, cases, fitting, StepPriors::load(priors, constants.rates), predictions,
                report);
  }
  const std::filesystem::path memory = cases.front().item.reference.parent_path() / "memory";
  std::error_code ignored;
  if (request.only.empty() && std::filesystem::is_directory(memory, ignored)) {
    add_memory_score(memory, report.score);
  }
  return report;
}

}  // namespace trainyard
