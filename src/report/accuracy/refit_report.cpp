// SPDX-License-Identifier: Apache-2.0
#include "report/accuracy/refit_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "report/formats/log_percent.h"

namespace trainyard {
namespace {

Cell median_of(const TableFigures& figures) {
  return error_cell(figures.tables > 0, figures.median);
}

Cell p90_of(const TableFigures& figures) {
  return error_cell(figures.tables > 0, figures.p90);
}

Cell bias_of(const TableFigures& figures) {
  return bias_cell(figures.tables > 0, figures.bias);
}

// Quantile of a normal distribution: 90 % are within so many standard deviations.
constexpr double k90Percent = 1.645;

// One line of a comparison: the same cases with each set of constants; what is not there is null.
struct Line {
  std::string name;
  const GroupResult* shipped = nullptr;
  const GroupResult* fitted = nullptr;
  const GroupResult* left_out = nullptr;
};

// Median and bias of large rows, median of small ones, three times each.
Table comparison(const char* name, const std::vector<Line>& lines, bool with_left_out) {
  std::vector<Column> columns{column(name, "", Align::Left)};
  const std::size_t sets = with_left_out ? 3 : 2;
  for (const std::array<const char*, 3>& names :
       {std::array{"large", "fitted", "left out"}, std::array{"p90", "fitted", "left out"},
        std::array{"bias", "fitted", "left out"}, std::array{"small", "fitted", "left out"}}) {
    for (std::size_t set = 0; set < sets; ++set) {
      columns.push_back(column(names[set], ""));
    }
  }
  Table table(std::move(columns));
  for (const Line& line : lines) {
    const std::array groups{line.shipped, line.fitted, line.left_out};
    std::vector<Cell> cells{Cell::of(line.name)};
    const auto add = [&](auto cell_of, bool large) {
      for (std::size_t set = 0; set < sets; ++set) {
        const GroupResult* const group = groups[set];
        cells.push_back(group == nullptr ? Cell::none()
                                         : cell_of(large ? group->large : group->small));
      }
    };
    add(median_of, true);
    add(p90_of, true);
    add(bias_of, true);
    add(median_of, false);
    table.add_row(std::move(cells));
  }
  return table;
}

const GroupResult* class_of(const Validation& validation, const std::string& name) {
  for (const GroupResult& group : validation.classes) {
    if (group.name == name) {
      return &group;
    }
  }
  return nullptr;
}

// The cases of each system together, by name.
std::map<std::string, GroupResult> by_system(const Validation& validation) {
  std::map<std::string, std::vector<const CaseResult*>> members;
  for (const CaseResult& one : validation.cases) {
    members[one.item.system].push_back(&one);
  }
  std::map<std::string, GroupResult> groups;
  for (const auto& [name, cases] : members) {
    groups.emplace(name, group_of(name, cases));
  }
  return groups;
}

const GroupResult* of_system(const std::map<std::string, GroupResult>& groups,
                             const std::string& name) {
  const auto found = groups.find(name);
  return found == groups.end() ? nullptr : &found->second;
}

// All together without the tables that stand alone with one of their constants.
GroupResult without_alone(const Validation& left_out, const std::vector<LeftOut>& systems) {
  std::set<std::string> alone;
  for (const LeftOut& one : systems) {
    alone.insert(one.alone.begin(), one.alone.end());
  }
  std::vector<const CaseResult*> cases;
  for (const CaseResult& one : left_out.cases) {
    if (!alone.contains(one.item.name)) {
      cases.push_back(&one);
    }
  }
  return group_of("sharing all constants", cases);
}

bool at_limit(const ProfileConstant& constant, double value) {
  return value > 0.999 * constant.most || value < 1.001 * constant.least;
}

// Returns its 90 % interval, within the limits that it is given.
std::array<double, 2> interval(const ProfileConstant& constant, const FittedParameter& fitted) {
  const double half = k90Percent * fitted.standard_error;
  return {std::max(constant.least, std::exp(fitted.value - half)),
          std::min(constant.most, std::exp(fitted.value + half))};
}

// "4.1 us to 5.2 us".
std::string interval_text(const ProfileConstant& constant, const FittedParameter& fitted) {
  const std::array<double, 2> ends = interval(constant, fitted);
  return fmt::format("{} to {}", constant_text(constant.kind, ends[0]),
                     constant_text(constant.kind, ends[1]));
}

Table fitted_table(const Refit& refit) {
  Table table({column("constant", "", Align::Left), column("profile", ""), column("fitted", ""),
               column("90 % within", "", Align::Left), column("rows", ""), column("systems", "")});
  for (std::size_t k = 0; k < refit.constants.size(); ++k) {
    const ProfileConstant& constant = refit.constants[k];
    const FittedParameter& fitted = refit.fit.parameters[k];
    const double value = std::exp(fitted.value);
    table.add_row(
        {Cell::of(constant.name), Cell::of(constant_text(constant.kind, constant.in_file)),
         Cell::of(constant_text(constant.kind, value) + (at_limit(constant, value) ? "!" : "")),
         Cell::of(interval_text(constant, fitted)),
         Cell::of(static_cast<std::int64_t>(fitted.rows)),
         Cell::of(static_cast<std::int64_t>(fitted.systems.size()))});
  }
  return table;
}

std::string left_out_notes(const Refit& refit) {
  std::string text;
  for (const LeftOut& one : refit.systems) {
    std::string names;
    for (const std::size_t k : one.unseen) {
      names += (names.empty() ? "" : ", ") + refit.constants[k].name;
    }
    if (!names.empty()) {
      text += fmt::format("# only {} shows: {}\n", one.system, names);
    }
    if (!one.fit.converged) {
      text += fmt::format("# the fit without {} has not converged\n", one.system);
    }
  }
  return text;
}

Json refit_json(const TableFigures& figures, const char* regime, Json json) {
  const auto add = [&](const char* what, double value) {
    json[fmt::format("{}_{}", what, regime)] = figures.tables > 0 ? Json(value) : Json(nullptr);
  };
  add("median_error", figures.median);
  add("p90_error", figures.p90);
  add("bias", figures.bias);
  return json;
}

Json refit_json(const GroupResult& group) {
  Json json;
  json["cases"] = group.cases;
  json["covered"] = group.covered;
  json["scored"] = group.scored;
  return refit_json(group.small, "small", refit_json(group.large, "large", std::move(json)));
}

Json refit_json(const CaseResult& one) {
  const std::array<const CaseResult*, 1> alone{&one};
  return refit_json(group_of("", alone));
}

Json refit_json(const ProfileConstant& constant, const FittedParameter& fitted) {
  static constexpr std::array kUnits{"s", "bit/s", "share"};
  Json json;
  json["name"] = constant.name;
  json["unit"] = kUnits[static_cast<std::size_t>(constant.kind)];
  json["in_profile"] = constant.in_file;
  json["assumed"] = constant.start;
  json["fitted"] = std::exp(fitted.value);
  json["standard_error_log"] = fitted.standard_error;
  json["interval_90"] = interval(constant, fitted);
  json["at_limit"] = at_limit(constant, std::exp(fitted.value));
  json["rows"] = fitted.rows;
  json["systems"] = fitted.systems;
  return json;
}

Json systems_json(const Validation& shipped, const Refit& refit) {
  const auto with_profile = by_system(shipped);
  const auto fitted = by_system(refit.fitted);
  const auto left_out = by_system(*refit.left_out);
  Json systems = Json::array();
  for (const LeftOut& one : refit.systems) {
    Json json;
    json["system"] = one.system;
    json["profile"] = refit_json(*of_system(with_profile, one.system));
    json["refit"] = refit_json(*of_system(fitted, one.system));
    json["leave_one_out"] = refit_json(*of_system(left_out, one.system));
    json["converged"] = one.fit.converged;
    json["unseen"] = Json::array();
    for (const std::size_t k : one.unseen) {
      json["unseen"].push_back(refit.constants[k].name);
    }
    json["alone"] = one.alone;
    systems.push_back(std::move(json));
  }
  return systems;
}

}  // namespace

std::string refit_text(const Validation& shipped, const Refit& refit) {
  const bool with_left_out = refit.left_out.has_value();
  std::string text =
      "#\n# Large rows (median, 90th percentile, bias) and small ones with the constants of the\n"
      "# profile, fitted to all tables";
  text += with_left_out ? ", and fitted to the tables of all systems but their own.\n" : ".\n";
  const auto line = [&](const std::string& name, const auto& group_in) {
    return Line{.name = name,
                .shipped = group_in(shipped),
                .fitted = group_in(refit.fitted),
                .left_out = with_left_out ? group_in(*refit.left_out) : nullptr};
  };
  std::vector<Line> lines;
  for (const GroupResult& group : shipped.classes) {
    lines.push_back(
        line(group.name, [&](const Validation& one) { return class_of(one, group.name); }));
  }
  lines.push_back(line("all", [](const Validation& one) { return &one.all; }));
  GroupResult shared;
  if (with_left_out) {
    shared = without_alone(*refit.left_out, refit.systems);
    lines.push_back({.name = shared.name, .left_out = &shared});
  }
  text += render_text(comparison("class", lines, with_left_out));
  if (with_left_out) {
    const auto with_profile = by_system(shipped);
    const auto fitted = by_system(refit.fitted);
    const auto left_out = by_system(*refit.left_out);
    lines.clear();
    for (const LeftOut& one : refit.systems) {
      lines.push_back({.name = one.system,
                       .shipped = of_system(with_profile, one.system),
                       .fitted = of_system(fitted, one.system),
                       .left_out = of_system(left_out, one.system)});
    }
    text += "#\n# Systems, each left out in turn.\n";
    text += render_text(comparison("system", lines, true));
    text += left_out_notes(refit);
  }
  text += fmt::format(
      "#\n# Constants fitted to all tables ({} rounds{}). rows, systems: those that move by a\n"
      "# twentieth or more of what the constant does; \"!\": at the limit that it is given.\n",
      refit.fit.rounds, refit.fit.converged ? "" : ", not converged");
  return text + render_text(fitted_table(refit));
}

void add_refit_columns(const Refit& refit, std::vector<Column>& columns) {
  const auto add = [&](const char* set) {
    for (const char* const what : {"median_error_large", "bias_large", "median_error_small"}) {
      columns.push_back({.name = "",
                         .key = fmt::format("{}_{}", set, what),
                         .align = Align::Right,
                         .unit = "",
                         .min_width = 0});
    }
  };
  add("refit");
  if (refit.left_out) {
    add("leave_one_out");
  }
}

void add_refit_cells(const Refit& refit, std::size_t index, std::vector<Cell>& cells) {
  const auto add = [&](const Validation& validation) {
    const std::array<const CaseResult*, 1> one{&validation.cases[index]};
    const GroupResult group = group_of("", one);
    cells.push_back(median_of(group.large));
    cells.push_back(bias_of(group.large));
    cells.push_back(median_of(group.small));
  };
  add(refit.fitted);
  if (refit.left_out) {
    add(*refit.left_out);
  }
}

void add_refit(const Validation& shipped, const Refit& refit, Json& root) {
  const auto add = [&](Json& target, const auto& json_in) {
    target["refit"] = json_in(refit.fitted);
    if (refit.left_out) {
      target["leave_one_out"] = json_in(*refit.left_out);
    }
  };
  add(root["summary"], [](const Validation& one) { return refit_json(one.all); });
  root["summary"]["refit"]["converged"] = refit.fit.converged;
  if (refit.left_out) {
    root["summary"]["leave_one_out"]["systems"] = refit.systems.size();
    root["summary"]["leave_one_out"]["of_shared_constants"] =
        refit_json(without_alone(*refit.left_out, refit.systems));
  }
  for (std::size_t index = 0; index < shipped.classes.size(); ++index) {
    add(root["classes"][index],
        [&](const Validation& one) { return refit_json(one.classes[index]); });
  }
  for (std::size_t index = 0; index < shipped.cases.size(); ++index) {
    add(root["cases"][index], [&](const Validation& one) { return refit_json(one.cases[index]); });
  }
  if (refit.left_out) {
    root["systems"] = systems_json(shipped, refit);
  }
  root["constants"] = Json::array();
  for (std::size_t k = 0; k < refit.constants.size(); ++k) {
    root["constants"].push_back(refit_json(refit.constants[k], refit.fit.parameters[k]));
  }
}

}  // namespace trainyard
