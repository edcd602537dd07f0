// SPDX-License-Identifier: Apache-2.0
#include "report/steps/search_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "parallelism/run/step_cost.h"
#include "parallelism/search/plan_space.h"
#include "report/formats/json.h"
#include "report/steps/cost_report.h"

namespace trainyard {
namespace {

std::string_view name_of(Recompute recompute) {
  constexpr std::array<std::string_view, 3> kNames{"none", "selective", "full"};
  return kNames[static_cast<std::size_t>(recompute)];
}

double tokens_per_second(const FoundPlan& found) {
  const ParallelPlan& plan = found.timed.plan;
  return static_cast<double>(plan.global_batch) * static_cast<double>(plan.sequence) /
         found.step().time.seconds();
}

double mfu(const SearchReport& report, const FoundPlan& found) {
  return tokens_per_second(found) * report.flops_of_token /
         (static_cast<double>(found.timed.plan.ranks()) * report.peak);
}

bool has_experts(const SearchReport& report) {
  return std::any_of(report.sizes.begin(), report.sizes.end(), [](const SearchOfSize& size) {
    return std::any_of(size.plans.begin(), size.plans.end(), [](const FoundPlan& found) {
      return found.timed.plan.expert * found.timed.plan.expert_tensor > 1;
    });
  });
}

bool has_costs(const SearchReport& report) {
  return !report.sizes.empty() && report.sizes.front().costs.has_value();
}

PricedStep priced_step(const SearchOfSize& size, const FoundPlan& found) {
  return {.cluster = *size.costs, .step = step_cost(*size.costs, found.timed.plan, found.step())};
}

// Energy of a step, and the price of a million tokens where there are prices; all keys but in text.
void add_cost_columns(const SearchReport& report, bool is_text, std::vector<Column>& columns) {
  if (!has_costs(report)) {
    return;
  }
  const ClusterCosts& costs = *report.sizes.front().costs;
  if (!is_text) {
    for (const auto& [key, cell] : cost_cells({.cluster = costs, .step = {}})) {
      columns.push_back({.name = key, .key = key});
    }
    return;
  }
  columns.push_back({.name = "energy", .key = "energy_of_step_kj", .unit = "(kJ)"});
  if (!costs.costs.currency.empty()) {
    columns.push_back({.name = "Mtoken",
                       .key = "price_of_million_tokens",
                       .unit = "(" + costs.costs.currency + ")"});
  }
}

void add_cost_cells(const SearchOfSize& size, const FoundPlan& found, bool is_text,
                    std::vector<Cell>& row) {
  if (!size.costs) {
    return;
  }
  const PricedStep priced = priced_step(size, found);
  if (!is_text) {
    for (auto& [key, cell] : cost_cells(priced)) {
      row.push_back(std::move(cell));
    }
    return;
  }
  const std::optional<double>& joules = priced.step.joules;
  row.push_back(cost_figure(joules ? std::optional(*joules / 1e3) : std::nullopt, 2));
  if (!size.costs->costs.currency.empty()) {
    row.push_back(cost_figure(priced.step.price_of_tokens(1e6), 4));
  }
}

std::vector<Column> columns_of(const SearchReport& report, bool is_text) {
  std::vector<Column> columns{{.name = "GPUs", .key = "gpus"}, {.name = "#", .key = "place"},
                              {.name = "TP", .key = "tp"},     {.name = "SP", .key = "sp"},
                              {.name = "CP", .key = "cp"},     {.name = "PP", .key = "pp"},
                              {.name = "VPP", .key = "vpp"},   {.name = "DP", .key = "dp"}};
  if (!is_text || has_experts(report)) {
    columns.push_back({.name = "EP", .key = "ep"});
    columns.push_back({.name = "ETP", .key = "etp"});
  }
  columns.push_back({.name = "micro", .key = "micro_batch"});
  columns.push_back({.name = "recompute", .key = "recompute", .align = Align::Left});
  columns.push_back({.name = "ZeRO", .key = "zero_stage"});
  columns.push_back({.name = "order", .key = "order", .align = Align::Left});
  if (!is_text) {
    columns.push_back({.name = "schedule", .key = "schedule", .align = Align::Left});
  }
  columns.push_back({.name = "step", .key = "step_time_s", .unit = "(s)"});
  if (!report.refined_method.empty()) {
    columns.push_back({.name = "first", .key = "first_step_time_s", .unit = "(s)"});
  }
  columns.push_back({.name = "MFU", .key = "mfu", .unit = "(%)"});
  columns.push_back({.name = "memory", .key = "memory_peak_gib", .unit = "(GiB)"});
  columns.push_back({.name = "network", .key = "network_gib_per_gpu", .unit = "(GiB)"});
  if (!is_text) {
    columns.push_back({.name = "headroom", .key = "headroom_gib"});
    columns.push_back({.name = "tokens", .key = "tokens_per_s"});
    columns.push_back({.name = "bound", .key = "bound_s"});
    columns.push_back({.name = "trade", .key = "is_trade"});
  }
  add_cost_columns(report, is_text, columns);
  return columns;
}

struct Place {
  std::string text;
  CellValue value;
};

std::vector<Cell> row_of(const SearchReport& report, const SearchOfSize& size,
                         const FoundPlan& found, const Place& place, bool is_text) {
  const ParallelPlan& plan = found.timed.plan;
  const auto count = [](std::int64_t value) { return Cell::of(value); };
  std::vector<Cell> row{
      count(plan.ranks()),
      {place.text, place.value},
      count(plan.tensor),
      {plan.has_sequence_parallelism ? "yes" : "no", plan.has_sequence_parallelism},
      count(plan.context),
      count(plan.pipeline),
      count(plan.chunks),
      count(plan.data)};
  if (!is_text || has_experts(report)) {
    row.push_back(count(plan.expert));
    row.push_back(count(plan.expert_tensor));
  }
  row.push_back(count(plan.micro_batch));
  row.push_back(Cell::of(std::string(name_of(plan.recompute))));
  row.push_back(count(plan.zero_stage));
  row.push_back(Cell::of(order_letters(plan.order)));
  if (!is_text) {
    row.push_back(Cell::of(std::string(to_string(plan.schedule))));
  }
  row.push_back(Cell::number(found.step().time.seconds(), 4));
  if (!report.refined_method.empty()) {
    row.push_back(Cell::number(found.timed.step.time.seconds(), 4));
  }
  const double share = mfu(report, found);
  row.push_back({fmt::format("{:.2f}", 100.0 * share), share});
  row.push_back(Cell::number(gibibytes(found.timed.memory.device()), 2));
  row.push_back(Cell::number(gibibytes(found.timed.network_bytes), 2));
  if (!is_text) {
    row.push_back(Cell::number(gibibytes(report.memory_size - found.timed.memory.device()), 2));
    row.push_back(Cell::number(tokens_per_second(found), 1));
    row.push_back(Cell::number(found.timed.bound.seconds(), 4));
    row.push_back({found.is_trade ? "yes" : "no", found.is_trade});
  }
  add_cost_cells(size, found, is_text, row);
  return row;
}

Table table_of(const SearchReport& report, bool is_text) {
  Table table(columns_of(report, is_text));
  for (const SearchOfSize& size : report.sizes) {
    std::int64_t place = 0;
    for (const FoundPlan& found : size.plans) {
      ++place;
      const std::string mark = is_text && found.is_trade ? "*" : "";
      table.add_row(
          row_of(report, size, found, {fmt::format("{}{}", place, mark), place}, is_text));
    }
    if (size.given) {
      table.add_row(row_of(report, size, *size.given, {"given", std::monostate()}, is_text));
    }
  }
  return table;
}

// Parts of the step, of the fastest plan beside another.
struct Rival {
  std::string name;
  const FoundPlan* plan = nullptr;
};

std::vector<Rival> rivals_of(const SearchOfSize& size) {
  std::vector<Rival> rivals;
  // Plans that take as long have the same parts, but for what hides.
  const auto next = std::find_if(size.plans.begin(), size.plans.end(), [&](const FoundPlan& plan) {
    return plan.step().time > size.plans.front().step().time;
  });
  if (next != size.plans.end()) {
    rivals.push_back(
        {.name = fmt::format("plan {}", next - size.plans.begin() + 1), .plan = &*next});
  }
  if (size.given && !size.plans.empty() && size.given->timed.index != size.plans[0].timed.index) {
    rivals.push_back({.name = "given", .plan = &*size.given});
  }
  return rivals;
}

Table blame_of(const SearchOfSize& size, const std::vector<Rival>& rivals) {
  std::vector<Column> columns{{.name = "part", .key = "part", .align = Align::Left},
                              {.name = "first", .key = "first_s", .unit = "(s)"}};
  for (const Rival& rival : rivals) {
    const std::string key = rival.name == "given" ? "given" : "next";
    columns.push_back({.name = rival.name, .key = key + "_s", .unit = "(s)"});
    columns.push_back({.name = "difference", .key = key + "_difference_s", .unit = "(s)"});
  }
  Table table(std::move(columns));
  const StepTime& first = size.plans.front().step();
  for (std::size_t index = 0; index < kStepParts; ++index) {
    std::vector<Cell> row{Cell::of(std::string(to_string(static_cast<StepPart>(index)))),
                          Cell::number(first.parts.times[index].seconds(), 4)};
    bool has_any = first.parts.times[index] > SimTime();
    for (const Rival& rival : rivals) {
      const SimTime time = rival.plan->step().parts.times[index];
      has_any = has_any || time > SimTime();
      const double difference = (time - first.parts.times[index]).seconds();
      row.push_back(Cell::number(time.seconds(), 4));
      row.push_back({fmt::format("{:+.4f}", difference), difference});
    }
    if (has_any) {
      table.add_row(std::move(row));
    }
  }
  return table;
}

// "0.51 s (1.6 %) longer: recompute +7.45, bubble -0.91".
std::string reason_text(const FoundPlan& first, const Rival& rival) {
  const StepTime& a = first.step();
  const StepTime& b = rival.plan->step();
  std::vector<std::pair<SimTime, std::size_t>> changes;
  for (std::size_t index = 0; index < kStepParts; ++index) {
    changes.emplace_back(b.parts.times[index] - a.parts.times[index], index);
  }
  const auto size_of = [](SimTime time) { return time < SimTime() ? SimTime() - time : time; };
  std::stable_sort(changes.begin(), changes.end(), [&](const auto& one, const auto& other) {
    return size_of(one.first) > size_of(other.first);
  });
  constexpr std::size_t kTold = 3;
  std::string parts;
  for (std::size_t index = 0; index < kTold; ++index) {
    const auto& [change, part] = changes[index];
    if (change != SimTime()) {
      parts += fmt::format("{}{} {:+.4f}", parts.empty() ? "" : ", ",
                           to_string(static_cast<StepPart>(part)), change.seconds());
    }
  }
  const double longer = (b.time - a.time).seconds();
  if (parts.empty()) {
    return "as long in every part";
  }
  return fmt::format("{:.4f} s ({:.2f} %) longer: {}", longer, 100.0 * longer / a.time.seconds(),
                     parts);
}

std::string counts_text(const SearchOfSize& size) {
  const SearchCounts& counts = size.counts;
  std::string text = fmt::format(
      "# {} GPUs: {} plans: {} invalid, {} out of memory, {} slower by their bound, {} timed\n",
      size.gpus, counts.all, counts.all_invalid(), counts.out_of_memory, counts.pruned,
      counts.timed);
  return text;
}

std::string search_text(const SearchReport& report) {
  std::string text = fmt::format(
      "# Simulated by Trainyard: cluster {}, runtime {}, {}\n# {}: {}, software {}, {}\n",
      report.cluster, report.runtime,
      report.refined_method.empty() ? report.method : report.refined_method, report.workload,
      report.model, report.software, report.precision);
  for (const SearchOfSize& size : report.sizes) {
    text += counts_text(size);
  }
  text += "#\n" + render_text(table_of(report, true));
  for (const SearchOfSize& size : report.sizes) {
    const std::vector<Rival> rivals = rivals_of(size);
    if (rivals.empty()) {
      continue;
    }
    text += fmt::format("\n# Why, on {} GPUs\n", size.gpus) + render_text(blame_of(size, rivals));
    for (const Rival& rival : rivals) {
      text += fmt::format("# {}: {}\n", rival.name, reason_text(size.plans.front(), rival));
    }
  }
  for (const std::string& note : report.notes) {
    text += "# Note: " + note + "\n";
  }
  return text;
}

Json counts_json(const SearchCounts& counts) {
  Json json;
  json["all"] = counts.all;
  json["invalid"] = counts.all_invalid();
  json["invalid_by_rule"] = Json::object();
  for (const auto& [rule, count] : counts.invalid) {
    json["invalid_by_rule"][rule] = count;
  }
  json["out_of_memory"] = counts.out_of_memory;
  json["pruned"] = counts.pruned;
  json["timed"] = counts.timed;
  return json;
}

std::string search_json(const SearchReport& report) {
  Json root;
  root["cluster"] = report.cluster;
  root["workload"] = report.workload;
  root["model"] = report.model;
  root["software"] = report.software;
  root["precision"] = report.precision;
  root["runtime"] = report.runtime;
  root["method"] = report.method;
  if (!report.refined_method.empty()) {
    root["refined_method"] = report.refined_method;
  }
  root["memory_size_gib"] = gibibytes(report.memory_size);
  root["searches"] = Json::array();
  for (const SearchOfSize& size : report.sizes) {
    Json one;
    one["gpus"] = size.gpus;
    one["plans"] = counts_json(size.counts);
    const std::vector<Rival> rivals = rivals_of(size);
    if (!rivals.empty()) {
      one["parts"] = to_json(blame_of(size, rivals));
      for (const Rival& rival : rivals) {
        one["why"][rival.name] = reason_text(size.plans.front(), rival);
      }
    }
    root["searches"].push_back(std::move(one));
  }
  root["plans"] = to_json(table_of(report, false));
  root["notes"] = report.notes;
  return to_text(root);
}

}  // namespace

std::string render(const SearchReport& report, Format format) {
  switch (format) {
    case Format::Csv:
      return render_csv(table_of(report, false));
    case Format::Json:
      return search_json(report);
    case Format::Table:
      break;
  }
  return search_text(report);
}

}  // namespace trainyard
