// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/training_budgets.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "sim/config.h"

namespace trainyard {
namespace {

constexpr double kSteps = 1000.0;  // Recorded digits.
constexpr double kSame = 1e-9;
constexpr double kMaxFigure = 1e9;
constexpr const char* kRows = "predicted";  // The one figure that may not fall.

void add(const std::string& kind, const StepErrors& errors,
         std::map<std::string, double>& figures) {
  if (errors.rows > 0) {
    figures["median_error_" + kind] = errors.median;
    figures["p90_error_" + kind] = errors.p90;
  }
}

double rounded_up(double value) {
  return std::max(0.0, std::ceil(value * kSteps - kSame)) / kSteps;
}

}  // namespace

TrainingBudgets load_training_budgets(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  TrainingBudgets budgets;
  for (const auto& [name, node] : document.root().entries()) {
    for (const auto& [figure, value] : node.entries()) {
      budgets.groups[name][figure] = value.as_number(0.0, kMaxFigure);
    }
  }
  document.finish();
  return budgets;
}

std::string to_yaml(const TrainingBudgets& budgets) {
  std::string text =
      "# Errors of predicted training steps, |ln(predicted / measured)|, that validation may not\n"
      "# exceed; rows that are predicted, at least. Recorded by\n"
      "#   trainyard validate --cases validation/cases/training --record-budgets\n";
  for (const auto& [name, figures] : budgets.groups) {
    text += name + ":\n";
    for (const auto& [figure, value] : figures) {
      text += figure == kRows ? fmt::format("  {}: {:.0f}\n", figure, value)
                              : fmt::format("  {}: {:.3f}\n", figure, value);
    }
  }
  return text;
}

TrainingBudgets seen_budgets(const TrainingScore& score) {
  TrainingBudgets seen;
  auto& all = seen.groups["all"];
  add("dense", score.dense, all);
  add("moe", score.experts, all);
  add("memory", score.memory, all);
  all[kRows] = static_cast<double>(score.predicted());
  for (const SourceScore& source : score.sources) {
    if (source.steps.empty()) {
      continue;
    }
    auto& figures = seen.groups[source.name + " " + source.generation];
    add("dense", source.dense, figures);
    add("moe", source.experts, figures);
    figures[kRows] = static_cast<double>(source.steps.size());
  }
  for (const MemoryScore& source : score.memory_sources) {
    auto& figures = seen.groups["memory " + source.name];
    add("memory", source.errors, figures);
  }
  return seen;
}

std::vector<std::string> exceeded_budgets(const TrainingBudgets& seen,
                                          const TrainingBudgets& budgets) {
  std::vector<std::string> lines;
  for (const auto& [name, figures] : budgets.groups) {
    const auto group = seen.groups.find(name);
    for (const auto& [figure, budget] : figures) {
      if (group == seen.groups.end() || !group->second.contains(figure)) {
        lines.push_back(
            fmt::format("{}: {}: expected {:.3f}, found nothing", name, figure, budget));
        continue;
      }
      const double found = group->second.at(figure);
      if (figure == kRows && found < budget) {
        lines.push_back(fmt::format("{}: {}: expected at least {:.0f}, found {:.0f}", name, figure,
                                    budget, found));
      } else if (figure != kRows && found > budget + kSame) {
        lines.push_back(fmt::format("{}: {}: expected at most {:.3f}, found {:.4f}", name, figure,
                                    budget, found));
      }
    }
  }
  return lines;
}

TrainingBudgets lowered(const TrainingBudgets& seen, const TrainingBudgets& before) {
  TrainingBudgets result = before;
  for (const auto& [name, figures] : seen.groups) {
    for (const auto& [figure, value] : figures) {
      const double recorded = figure == kRows ? value : rounded_up(value);
      const auto [place, is_new] = result.groups[name].try_emplace(figure, recorded);
      if (!is_new) {
        place->second =
            figure == kRows ? std::max(place->second, recorded) : std::min(place->second, recorded);
      }
    }
  }
  return result;
}

}  // namespace trainyard
