// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <optional>
#include <string_view>
#include <utility>

#include "cli/common/common.h"
#include "cli/common/cost_options.h"
#include "cli/common/effects.h"
#include "cli/common/html_output.h"
#include "cli/common/inputs.h"
#include "cli/common/log.h"
#include "cli/common/options.h"
#include "cli/common/runtime.h"
#include "parallelism/run/step_cost.h"
#include "parallelism/run/step_run.h"
#include "report/formats/document.h"
#include "report/steps/cost_report.h"
#include "sim/config_error.h"
#include "topology/server/part_costs.h"

namespace trainyard {
namespace {

constexpr std::string_view kCostExample = R"(
Watts are the limits of data sheets; prices come from --prices alone, a YAML file:

  currency: USD
  kwh: 0.08           # a kWh
  years: 4            # over which parts are paid off
  parts: {H100-SXM: {price: 25000, idle_watts: 75}, ConnectX-7: {price: 1500, watts: 25}}

Parts without watts or price are named and not in the sums (docs/commands/cost.md).

Examples:
  trainyard cost --cluster dgx-h100 --nodes 16
  trainyard cost --cluster dgx-h100 --nodes 1 --workload llama-3-8b --prices mine.yaml
)";

struct CostReport {
  std::string cluster;
  ClusterCosts costs;
  std::optional<double> seconds = {};  // The time of the step, if there is one.
  std::optional<StepCost> step = {};
  std::vector<std::string> notes = {};
};

// Runs a step as `trainyard step` does without options.
StepRun run_step_of(const InputNames& inputs, const Cluster& cluster) {
  const JobInputs job = load_job(inputs.workload, inputs.workload_settings);
  const GpuRates rates = load_gpu_rates(std::nullopt);
  const nccl::Profile profile = load_profile(std::nullopt);
  StepTables tables{.rates = rates};
  Runtime().apply(profile, tables);
  return run_workload(cluster, job.workload, job.software, tables);
}

std::optional<double> times_count(const std::optional<double>& value, std::size_t count) {
  return value ? std::optional(*value * static_cast<double>(count)) : std::nullopt;
}

Table parts_table(const CostReport& report) {
  constexpr double kKilo = 1e3;
  const std::string currency = report.costs.costs.currency;
  Table table({{.name = "kind", .key = "kind", .align = Align::Left},
               {.name = "part", .key = "part", .align = Align::Left},
               {.name = "count", .key = "count"},
               {.name = "each", .key = "watts", .unit = "(W)"},
               {.name = "idle", .key = "idle_watts", .unit = "(W)"},
               {.name = "all", .key = "all_kw", .unit = "(kW)"},
               {.name = "price", .key = "price", .unit = currency},
               {.name = "all", .key = "all_price", .unit = currency}});
  for (const CountedPart& part : report.costs.parts) {
    const auto watts = times_count(part.cost.watts, part.count);
    table.add_row({Cell::of(to_string(part.kind)), Cell::of(part.part), Cell::count(part.count),
                   Cell::number(part.cost.watts, 1), Cell::number(part.cost.idle_watts, 1),
                   Cell::number(watts ? std::optional(*watts / kKilo) : std::nullopt, 2),
                   Cell::number(part.cost.price, 2),
                   Cell::number(times_count(part.cost.price, part.count), 2)});
  }
  return table;
}

Document document_of(const CostReport& report) {
  const CostTotals& totals = report.costs.totals;
  const auto some = [](double value) { return value > 0.0 ? CellValue(value) : CellValue(); };
  Document document{.heading = {"Cluster " + report.cluster}, .notes = cost_notes(report.costs)};
  append_once(report.notes, document.notes);
  const auto add = [&](Figure figure) {
    figure.group = "totals";
    document.add(std::move(figure));
  };
  document.add(
      NamedTable{.key = "parts", .table = parts_table(report), .shown = Shown::Text | Shown::Json});
  add({.key = "cluster", .cell = Cell::of(report.cluster)});
  add({.key = "power_kw",
       .cell = {fmt::format("{:.2f}", totals.watts / 1e3), some(totals.watts / 1e3)},
       .label = "power",
       .unit = "kW at the limits"});
  add({.key = "price",
       .cell = {fmt::format("{:.2f}", totals.price), some(totals.price)},
       .label = totals.price > 0.0 ? "price" : "",
       .unit = report.costs.costs.currency});
  if (report.step) {
    add({.cell = Cell::number(*report.seconds, 4),
         .label = "step time",
         .unit = "s",
         .remark = fmt::format(", of which GPUs compute {:.1f} %", 100.0 * report.step->busy)});
  }
  for (Figure& figure : cost_figures({report.costs, report.step.value_or(StepCost())}, "totals")) {
    figure.label = report.step ? figure.label : "";
    document.add(std::move(figure));
  }
  add({.key = "step_time_s", .cell = Cell::number(report.seconds, 4)});
  add({.key = "compute_share",
       .cell = Cell::number(report.step ? std::optional(report.step->busy) : std::nullopt, 4)});
  return document;
}

int run_cost(const OptionReader& reader, std::ostream& out) {
  const InputNames inputs = read_input_names(reader);
  const ResultTarget target = result_target(reader);
  spdlog::logger log = make_logger(reader);
  const Cluster cluster = load_cluster_inputs(inputs, log);
  CostReport report{.cluster = cluster.name,
                    .costs = load_costs({.prices = reader.text("prices")}, cluster)};
  RunCounts counts{.gpus = cluster.gpus.size()};
  if (!inputs.workload.empty()) {
    const StepRun run = run_step_of(inputs, cluster);
    report.seconds = run.step.time.seconds();
    report.step = step_cost(report.costs, run.plan, run.step);
    counts.communicators = run.simulated;
    counts.rank_calls = run.simulated * counts.gpus;
    add_job_note(inputs, report.notes);
  }
  write_result(target, with_effects(reader, document_of(report), counts), out);
  return 0;
}

}  // namespace

Command cost_command() {
  return {.name = "cost",
          .form = "cost",
          .summary = "what a cluster draws and costs, and a token trained on it",
          .usage = "cost --cluster NAME|FILE [options]",
          .options = joined({cluster_options(),
                             Options{{"workload",
                                      "NAME|FILE",
                                      "energy and cost of a step of this job, as for step",
                                      {.role = Role::Input, .names = "workloads"}},
                                     model_option(),
                                     {"prices", "FILE",
                                      "prices and watts of parts, of a kWh, years of use", kInput}},
                             output_options(), log_options()}),
          .example = kCostExample,
          .run = run_cost,
          .is_swept = true};
}

}  // namespace trainyard
