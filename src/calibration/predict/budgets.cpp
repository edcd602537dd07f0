// SPDX-License-Identifier: Apache-2.0
#include "calibration/predict/budgets.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "sim/config.h"

namespace trainyard {
namespace {

// Recorded digits; what is below half of the last one is the same figure.
constexpr double kSteps = 1000.0;
constexpr double kSame = 1e-9;

struct Figure {
  std::string_view key;
  std::optional<double> Budget::*value;
};

constexpr std::array kFigures{Figure{"median_error_large", &Budget::median_large},
                              Figure{"p90_error_large", &Budget::p90_large},
                              Figure{"median_error_small", &Budget::median_small}};

Budget seen(const GroupResult& group) {
  Budget budget{.covered = group.covered};
  if (group.large.tables > 0) {
    budget.median_large = group.large.median;
    budget.p90_large = group.large.p90;
  }
  if (group.small.tables > 0) {
    budget.median_small = group.small.median;
  }
  return budget;
}

std::map<std::string, Budget> seen_groups(const Validation& validation) {
  std::map<std::string, Budget> groups;
  for (const GroupResult& group : validation.classes) {
    groups[group.name] = seen(group);
  }
  groups[validation.all.name] = seen(validation.all);
  return groups;
}

void check_group(const std::string& name, const Budget& budget, const Budget& now,
                 std::vector<std::string>& lines) {
  if (now.covered < budget.covered) {
    lines.push_back(fmt::format("{}: covered: expected at least {}, found {}", name, budget.covered,
                                now.covered));
  }
  for (const Figure& figure : kFigures) {
    const std::optional<double> max = budget.*figure.value;
    const std::optional<double> found = now.*figure.value;
    if (max && found && *found > *max + kSame) {
      lines.push_back(fmt::format("{}: {}: expected at most {:.3f}, found {:.4f}", name, figure.key,
                                  *max, *found));
    }
  }
}

Budget read_budget(const ConfigNode& node) {
  Budget budget;
  budget.covered = static_cast<int>(node.required("covered").as_integer(0, 1'000'000));
  for (const Figure& figure : kFigures) {
    if (const std::optional<ConfigNode> value = node.optional(figure.key)) {
      budget.*figure.value = value->as_number(0.0, 1000.0);
    }
  }
  return budget;
}

}  // namespace

Budgets load_budgets(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  Budgets budgets;
  for (const auto& [name, node] : document.root().entries()) {
    budgets.groups[name] = read_budget(node);
  }
  document.finish();
  return budgets;
}

std::string to_yaml(const Budgets& budgets) {
  std::string text =
      "# Errors that trainyard validate may not exceed, |ln(predicted / measured)| over tables.\n"
      "# Written by trainyard validate --record-budgets, which only lowers them.\n";
  for (const auto& [name, budget] : budgets.groups) {
    text += fmt::format("{}: {{covered: {}", name, budget.covered);
    for (const Figure& figure : kFigures) {
      if (const std::optional<double> value = budget.*figure.value) {
        text += fmt::format(", {}: {:.3f}", figure.key, *value);
      }
    }
    text += "}\n";
  }
  return text;
}

std::vector<std::string> exceeded_budgets(const Validation& validation, const Budgets& budgets) {
  const std::map<std::string, Budget> now = seen_groups(validation);
  std::vector<std::string> lines;
  for (const auto& [name, budget] : budgets.groups) {
    const auto found = now.find(name);
    check_group(name, budget, found == now.end() ? Budget{} : found->second, lines);
  }
  return lines;
}

Budgets lowered(const Validation& validation, const Budgets& before) {
  Budgets after = before;
  for (const auto& [name, now] : seen_groups(validation)) {
    Budget& budget = after.groups[name];
    budget.covered = std::max(budget.covered, now.covered);
    for (const Figure& figure : kFigures) {
      if (const std::optional<double> found = now.*figure.value) {
        const double rounded = std::ceil(*found * kSteps - kSame) / kSteps;
        std::optional<double>& kept = budget.*figure.value;
        kept = kept ? std::min(*kept, rounded) : rounded;
      }
    }
  }
  return after;
}

}  // namespace trainyard
