// SPDX-License-Identifier: Apache-2.0
#include "report/steps/search_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "parallelism/run/step_cost.h"
#include "parallelism/search/plan_space.h"
#include "report/formats/json.h"
#include "report/steps/cost_report.h"

namespace trainyard {
namespace {

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

void add_plan_fields(const SearchReport& report, const FoundPlan& found, const Cell& place,
                     std::vector<Field>& fields) {
  const ParallelPlan& plan = found.timed.plan;
  const auto add = [&](const char* name, const char* key, Cell cell, Shown shown = Shown::All) {
    const bool is_word = std::holds_alternative<std::string>(cell.value);
    fields.push_back(
        {{.name = name, .key = key, .align = is_word ? Align::Left : Align::Right, .shown = shown},
         std::move(cell)});
  };
  const Shown of_experts = has_experts(report) ? Shown::All : Shown::Programs;
  add("GPUs", "gpus", Cell::count(plan.ranks()));
  add("#", "place", place);
  add("TP", "tp", Cell::count(plan.tensor));
  add("SP", "sp", Cell::yes_no(plan.has_sequence_parallelism));
  add("CP", "cp", Cell::count(plan.context));
  add("PP", "pp", Cell::count(plan.pipeline));
  add("VPP", "vpp", Cell::count(plan.chunks));
  add("DP", "dp", Cell::count(plan.data));
  add("EP", "ep", Cell::count(plan.expert), of_experts);
  add("ETP", "etp", Cell::count(plan.expert_tensor), of_experts);
  add("micro", "micro_batch", Cell::count(plan.micro_batch));
  add("recompute", "recompute", Cell::of(to_string(plan.recompute)));
  add("ZeRO", "zero_stage", Cell::count(plan.zero_stage));
  add("order", "order", Cell::of(order_letters(plan.order)));
  add("schedule", "schedule", Cell::of(to_string(plan.schedule)), Shown::Programs);
}

void add_result_fields(const SearchReport& report, const FoundPlan& found,
                       std::vector<Field>& fields) {
  const auto add = [&](const char* name, const char* key, const char* unit, Cell cell,
                       Shown shown = Shown::All) {
    fields.push_back({{.name = name, .key = key, .unit = unit, .shown = shown}, std::move(cell)});
  };
  const double share = mfu(report, found);
  const Bytes memory = found.timed.memory.device();
  add("step", "step_time_s", "(s)", Cell::number(found.step().time.seconds(), 4));
  if (!report.refined_method.empty()) {
    add("first", "first_step_time_s", "(s)", Cell::number(found.timed.step.time.seconds(), 4));
  }
  add("MFU", "mfu", "(%)", {fmt::format("{:.2f}", 100.0 * share), share});
  add("memory", "memory_peak_gib", "(GiB)", Cell::number(gibibytes(memory), 2));
  add("network", "network_gib_per_gpu", "(GiB)",
      Cell::number(gibibytes(found.timed.network_bytes), 2));
  add("headroom", "headroom_gib", "(GiB)", Cell::number(gibibytes(report.memory_size - memory), 2),
      Shown::Programs);
  add("tokens", "tokens_per_s", "(/s)", Cell::number(tokens_per_second(found), 1), Shown::Programs);
  add("bound", "bound_s", "(s)", Cell::number(found.timed.bound.seconds(), 4), Shown::Programs);
  add("trade", "is_trade", "", Cell::yes_no(found.is_trade), Shown::Programs);
}

// All keys for programs; for people the energy of a step, and the price of a million tokens where
// there are prices.
void add_cost_fields(const ClusterCosts& costs, const FoundPlan& found,
                     std::vector<Field>& fields) {
  const bool has_time = found.step().time > SimTime();
  const PricedStep priced{
      .cluster = costs,
      .step = has_time ? step_cost(costs, found.timed.plan, found.step()) : StepCost()};
  for (Figure& figure : cost_figures(priced, "")) {
    fields.push_back({{.name = figure.key, .key = figure.key, .shown = Shown::Programs},
                      std::move(figure.cell)});
  }
  const std::optional<double>& joules = priced.step.joules;
  fields.push_back({{.name = "energy", .key = "", .unit = "(kJ)", .shown = Shown::People},
                    Cell::number(joules ? std::optional(*joules / 1e3) : std::nullopt, 2)});
  const std::string& currency = costs.costs.currency;
  if (!currency.empty()) {
    fields.push_back(
        {{.name = "Mtoken", .key = "", .unit = "(" + currency + ")", .shown = Shown::People},
         Cell::number(priced.step.price_of_tokens(1e6), 4)});
  }
}

// A line of the table.
struct PlanRow {
  const SearchOfSize* size = nullptr;
  const FoundPlan* found = nullptr;
  Cell place = {};
};

Table plan_table(const SearchReport& report) {
  std::vector<PlanRow> rows;
  for (const SearchOfSize& size : report.sizes) {
    std::int64_t place = 0;
    for (const FoundPlan& found : size.plans) {
      ++place;
      rows.push_back(
          {&size, &found, {fmt::format("{}{}", place, found.is_trade ? "*" : ""), place}});
    }
    if (size.given) {
      rows.push_back({&size, &*size.given, {"given", std::monostate()}});
    }
  }
  const SearchOfSize no_size = {};
  const FoundPlan no_plan = {};
  const auto fields_of = [&](const PlanRow& row) {
    std::vector<Field> fields;
    add_plan_fields(report, *row.found, row.place, fields);
    add_result_fields(report, *row.found, fields);
    if (row.size->costs) {
      add_cost_fields(*row.size->costs, *row.found, fields);
    }
    return fields;
  };
  return table_of(rows, fields_of,
                  {report.sizes.empty() ? &no_size : &report.sizes.front(), &no_plan, {}});
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
    std::vector<Cell> row{Cell::of(to_string(static_cast<StepPart>(index))),
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

Json searches_json(const SearchReport& report) {
  Json searches = Json::array();
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
    searches.push_back(std::move(one));
  }
  return searches;
}

// A table says what the first plan has over the others; JSON has the same with the counts.
void add_blame(const SearchOfSize& size, Document& document) {
  const std::vector<Rival> rivals = rivals_of(size);
  if (rivals.empty()) {
    return;
  }
  NamedTable blame{.key = "",
                   .table = blame_of(size, rivals),
                   .title = fmt::format("Why, on {} GPUs", size.gpus),
                   .is_apart = true,
                   .shown = Shown::People};
  for (const Rival& rival : rivals) {
    blame.remarks.push_back(
        fmt::format("{}: {}", rival.name, reason_text(size.plans.front(), rival)));
  }
  document.add(std::move(blame));
}

}  // namespace

Document document_of(const SearchReport& report) {
  Document document{
      .title = fmt::format("Plans for {} on {}", report.model, report.cluster),
      .subtitle = fmt::format("Searched by Trainyard: {}, runtime {}, software {}, {}",
                              report.workload, report.runtime, report.software, report.precision),
      .notes = report.notes};
  document.heading = {
      fmt::format("Simulated by Trainyard: cluster {}, runtime {}, {}", report.cluster,
                  report.runtime,
                  report.refined_method.empty() ? report.method : report.refined_method),
      fmt::format("{}: {}, software {}, {}", report.workload, report.model, report.software,
                  report.precision)};
  for (const SearchOfSize& size : report.sizes) {
    const SearchCounts& counts = size.counts;
    document.heading.push_back(fmt::format(
        "{} GPUs: {} plans: {} invalid, {} out of memory, {} slower by their bound, {} timed",
        size.gpus, counts.all, counts.all_invalid(), counts.out_of_memory, counts.pruned,
        counts.timed));
    document.subtitle += "; " + document.heading.back();
  }
  document.heading.emplace_back();
  document.add("cluster", report.cluster);
  document.add("workload", report.workload);
  document.add("model", report.model);
  document.add("software", report.software);
  document.add("precision", report.precision);
  document.add("runtime", report.runtime);
  document.add("method", report.method);
  if (!report.refined_method.empty()) {
    document.add("refined_method", report.refined_method);
  }
  document.add("memory_size_gib", gibibytes(report.memory_size));
  document.add_detail("searches", searches_json(report));
  document.add(NamedTable{.key = "plans", .table = plan_table(report)});
  for (const SearchOfSize& size : report.sizes) {
    add_blame(size, document);
  }
  return document;
}

}  // namespace trainyard
