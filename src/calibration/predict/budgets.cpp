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

constexpr double kSteps = 1000.0;  // Recorded digits.
constexpr double kSame = 1e-9;
constexpr double kMaxFigure = 1e9;

struct Figure {
  std::string_view key;
  std::string_view text;
};

// Counts, which may not fall; the others are errors.
constexpr std::array kCounts{Figure{"covered", "Cases that are predicted, at least."},
                             Figure{"predicted", "Rows that are predicted, at least."}};
constexpr std::array kErrors{
    Figure{"median_error_large", "Median over the tables, 64 KiB and more."},
    Figure{"p90_error_large", "Its 90th percentile."},
    Figure{"median_error_small", "Median over the tables, below 64 KiB."},
    Figure{"median_error_dense", "Median over the steps of dense models."},
    Figure{"p90_error_dense", "Its 90th percentile."},
    Figure{"median_error_moe", "Median over the steps of models with experts."},
    Figure{"p90_error_moe", "Its 90th percentile."},
    Figure{"median_error_memory", "Median over the memory of GPUs."},
    Figure{"p90_error_memory", "Its 90th percentile."}};

bool is_count(std::string_view figure) {
  return std::ranges::find(kCounts, figure, &Figure::key) != kCounts.end();
}

std::string text_of(std::string_view figure, double value, int digits) {
  return fmt::format("{:.{}f}", value, is_count(figure) ? 0 : digits);
}

void group_fields(Fields& fields, std::map<std::string, double>& figures) {
  const auto row = [&](const Figure& figure) {
    double value = 0.0;
    if (fields.optional(figure.key, value, Number{0.0, kMaxFigure}, figure.text)) {
      figures.emplace(figure.key, value);
    }
  };
  std::ranges::for_each(kCounts, row);
  std::ranges::for_each(kErrors, row);
}

std::map<std::string, double> seen(const GroupResult& group) {
  std::map<std::string, double> figures{{"covered", group.covered}};
  if (group.large.tables > 0) {
    figures["median_error_large"] = group.large.median;
    figures["p90_error_large"] = group.large.p90;
  }
  if (group.small.tables > 0) {
    figures["median_error_small"] = group.small.median;
  }
  return figures;
}

}  // namespace

void budget_fields(Fields& fields, Budgets& budgets) {
  fields.named(budgets, Group{group_fields});
}

Budgets load_budgets(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  Budgets budgets;
  read_fields(document.root(), budgets, budget_fields);
  document.finish();
  return budgets;
}

std::string to_yaml(const Budgets& budgets) {
  std::string text =
      "# Errors that trainyard validate may not exceed, |ln(predicted / measured)|, and how many\n"
      "# cases or rows it predicts at least.\n"
      "# Written by trainyard validate --record-budgets, which only lowers errors.\n";
  for (const auto& [name, figures] : budgets) {
    std::string list;
    for (const auto& [figure, value] : figures) {
      list += fmt::format("{}{}: {}", list.empty() ? "" : ", ", figure, text_of(figure, value, 3));
    }
    text += fmt::format("{}: {{{}}}\n", name, list);
  }
  return text;
}

Budgets seen_budgets(const Validation& validation) {
  Budgets groups{{validation.all.name, seen(validation.all)}};
  for (const GroupResult& group : validation.classes) {
    groups[group.name] = seen(group);
  }
  return groups;
}

std::vector<std::string> exceeded_budgets(const Budgets& seen, const Budgets& budgets) {
  std::vector<std::string> lines;
  for (const auto& [name, figures] : budgets) {
    const auto group = seen.find(name);
    for (const auto& [figure, budget] : figures) {
      const bool is_seen = group != seen.end() && group->second.contains(figure);
      const double found = is_seen ? group->second.at(figure) : 0.0;
      const bool holds = is_count(figure) ? found >= budget : is_seen && found <= budget + kSame;
      if (!holds) {
        lines.push_back(fmt::format("{}: {}: expected at {} {}, found {}", name, figure,
                                    is_count(figure) ? "least" : "most", text_of(figure, budget, 3),
                                    is_seen ? text_of(figure, found, 4) : "nothing"));
      }
    }
  }
  return lines;
}

Budgets lowered(const Budgets& seen, const Budgets& before) {
  Budgets result = before;
  for (const auto& [name, figures] : seen) {
    for (const auto& [figure, value] : figures) {
      const double recorded =
          is_count(figure) ? value : std::max(0.0, std::ceil(value * kSteps - kSame)) / kSteps;
      const auto [place, is_new] = result[name].try_emplace(figure, recorded);
      if (!is_new) {
        place->second = is_count(figure) ? std::max(place->second, recorded)
                                         : std::min(place->second, recorded);
      }
    }
  }
  return result;
}

}  // namespace trainyard
