// SPDX-License-Identifier: Apache-2.0
#include "cli/cost.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common.h"
#include "cli/log.h"
#include "cli/options.h"
#include "cli/step_request.h"
#include "nccl/profile.h"
#include "parallelism/gpu_rates.h"
#include "parallelism/software_profile.h"
#include "parallelism/step_run.h"
#include "parallelism/workload.h"
#include "report/table.h"
#include "sim/config_error.h"
#include "topology/part_costs.h"

namespace trainyard {
namespace {

namespace options = boost::program_options;

constexpr std::string_view kExample = R"(
Watts are the limits of data sheets; prices come from --prices alone, a YAML file:

  currency: USD
  kwh: 0.08           # a kWh
  years: 4            # over which parts are paid off
  parts: {H100-SXM: {price: 25000, idle_watts: 75}, ConnectX-7: {price: 1500, watts: 25}}

Parts without watts or price are named and not in the sums (docs/cost-command.md).

Examples:
  trainyard cost --cluster dgx-h100 --nodes 16
  trainyard cost --cluster dgx-h100 --nodes 1 --workload llama-3-8b --prices mine.yaml
)";

// What a step needs of the cluster.
struct StepCost {
  double seconds = 0.0;
  double tokens = 0.0;
  double busy = 0.0;  // Share of the step in which the busiest rank computes.
};

struct CostReport {
  std::string cluster;
  std::vector<CountedPart> parts;
  PartCosts costs;
  CostTotals totals;
  std::optional<StepCost> step = {};

  [[nodiscard]] double joules() const { return step_joules(totals, step->seconds, step->busy); }
  [[nodiscard]] double kwh_of_million_tokens() const {
    constexpr double kJoulesOfKwh = 3.6e6;
    return joules() / kJoulesOfKwh / step->tokens * 1e6;
  }
  // Of parts over their years and of energy, as far as they are said; nothing if neither is.
  [[nodiscard]] std::optional<double> price_of_million_tokens() const {
    constexpr double kSecondsOfYear = 365.25 * 86'400.0;
    std::optional<double> sum;
    if (costs.years && totals.price > 0.0) {
      sum = totals.price / (*costs.years * kSecondsOfYear) * step->seconds / step->tokens * 1e6;
    }
    if (costs.kwh && totals.watts > 0.0) {
      sum = sum.value_or(0.0) + *costs.kwh * kwh_of_million_tokens();
    }
    return sum;
  }
};

StepCost step_cost(const std::string& name, const std::vector<std::string>& settings,
                   const Cluster& cluster, const Catalogue& catalogue) {
  const std::filesystem::path configs = configs_folder();
  const Workload workload =
      load_workload(find_config("workloads", name), configs / "workloads" / "models", settings);
  const SoftwareProfile software =
      SoftwareProfile::load(find_config("software", workload.software));
  const GpuRates rates = GpuRates::load(configs / "hardware" / "gpu-rates.yaml");
  const nccl::Profile profile = nccl::Profile::load(configs / "nccl" / "profile.yaml");
  const StepRun run = run_workload(cluster, workload, software,
                                   {.catalogue = catalogue, .rates = rates, .nccl = &profile});
  SimTime computes;
  for (const StepPart part :
       {StepPart::Linear, StepPart::Attention, StepPart::MemoryBound, StepPart::Casts,
        StepPart::Head, StepPart::Recompute, StepPart::Optimizer}) {
    computes += run.step.parts[part];
  }
  return {
      .seconds = run.step.time.seconds(),
      .tokens = static_cast<double>(run.plan.global_batch) * static_cast<double>(run.plan.sequence),
      .busy = computes / run.step.time};
}

Cell figure(const std::optional<double>& value, int decimals) {
  return value ? Cell{fmt::format("{:.{}f}", *value, decimals), *value} : Cell::none();
}

std::optional<double> times_count(const std::optional<double>& value, std::size_t count) {
  return value ? std::optional(*value * static_cast<double>(count)) : std::nullopt;
}

Table parts_table(const CostReport& report) {
  constexpr double kKilo = 1e3;
  const std::string currency = report.costs.currency.empty() ? "" : report.costs.currency;
  Table table({{.name = "kind", .key = "kind", .align = Align::Left},
               {.name = "part", .key = "part", .align = Align::Left},
               {.name = "count", .key = "count"},
               {.name = "each", .key = "watts", .unit = "(W)"},
               {.name = "idle", .key = "idle_watts", .unit = "(W)"},
               {.name = "all", .key = "all_kw", .unit = "(kW)"},
               {.name = "price", .key = "price", .unit = currency},
               {.name = "all", .key = "all_price", .unit = currency}});
  for (const CountedPart& part : report.parts) {
    const auto watts = times_count(part.cost.watts, part.count);
    table.add_row({Cell::of(std::string(to_string(part.kind))), Cell::of(part.part),
                   Cell::of(static_cast<std::int64_t>(part.count)), figure(part.cost.watts, 1),
                   figure(part.cost.idle_watts, 1),
                   figure(watts ? std::optional(*watts / kKilo) : std::nullopt, 2),
                   figure(part.cost.price, 2),
                   figure(times_count(part.cost.price, part.count), 2)});
  }
  return table;
}

// Of the whole cluster, in one line.
Table totals_table(const CostReport& report) {
  Table table({{.name = "cluster", .key = "cluster", .align = Align::Left},
               {.name = "power", .key = "power_kw"},
               {.name = "price", .key = "price"},
               {.name = "currency", .key = "currency", .align = Align::Left},
               {.name = "without watts", .key = "without_watts", .align = Align::Left},
               {.name = "without price", .key = "without_price", .align = Align::Left},
               {.name = "step", .key = "step_time_s"},
               {.name = "energy", .key = "energy_of_step_kj"},
               {.name = "energy", .key = "energy_of_million_tokens_kwh"},
               {.name = "price", .key = "price_of_million_tokens"}});
  const CostTotals& totals = report.totals;
  const auto some = [](double value) { return value > 0.0 ? std::optional(value) : std::nullopt; };
  std::vector<Cell> row{Cell::of(report.cluster),
                        figure(some(totals.watts / 1e3), 3),
                        figure(some(totals.price), 2),
                        Cell::of(report.costs.currency),
                        Cell::of(fmt::format("{}", fmt::join(totals.without_watts, " "))),
                        Cell::of(fmt::format("{}", fmt::join(totals.without_price, " ")))};
  if (report.step) {
    const bool has_watts = totals.watts > 0.0;
    row.push_back(figure(report.step->seconds, 4));
    row.push_back(has_watts ? figure(report.joules() / 1e3, 3) : Cell::none());
    row.push_back(has_watts ? figure(report.kwh_of_million_tokens(), 4) : Cell::none());
    row.push_back(figure(report.price_of_million_tokens(), 4));
  } else {
    row.insert(row.end(), 4, Cell::none());
  }
  table.add_row(std::move(row));
  return table;
}

std::string text_of(const CostReport& report) {
  const CostTotals& totals = report.totals;
  std::string text = fmt::format("# Cluster {}\n", report.cluster) +
                     render_text(parts_table(report)) +
                     fmt::format("\npower   {:>12.2f} kW at the limits\n", totals.watts / 1e3);
  if (totals.price > 0.0) {
    text += fmt::format("price   {:>12.2f} {}\n", totals.price, report.costs.currency);
  }
  if (report.step) {
    text += fmt::format("step    {:>12.4f} s, of which GPUs compute {:.1f} %\n",
                        report.step->seconds, 100.0 * report.step->busy);
    if (totals.watts > 0.0) {
      text += fmt::format("energy  {:>12.2f} kJ for a step, {:.4f} kWh for a million tokens\n",
                          report.joules() / 1e3, report.kwh_of_million_tokens());
    }
    if (const auto price = report.price_of_million_tokens()) {
      text +=
          fmt::format("cost    {:>12.4f} {} for a million tokens\n", *price, report.costs.currency);
    }
  }
  const auto note = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) {
      text += fmt::format("# Note: {}: {}\n", what, fmt::join(names, ", "));
    }
  };
  note("not in the power, as nobody says their watts", totals.without_watts);
  note("not in the price, as nobody says theirs", totals.without_price);
  note("counted at their limit all the time, as nobody says what they draw idle",
       totals.without_idle);
  text += "# Note: without fans, memory, disks, cables, optics and losses of supplies\n";
  return text;
}

std::string render_cost(const CostReport& report, Format format) {
  if (format == Format::Csv) {
    return render_csv(totals_table(report));
  }
  if (format == Format::Json) {
    nlohmann::ordered_json root;
    root["parts"] = nlohmann::ordered_json::parse(render_json(parts_table(report)));
    root["totals"] = nlohmann::ordered_json::parse(render_json(totals_table(report))).front();
    return root.dump(2) + "\n";
  }
  return text_of(report);
}

}  // namespace

options::options_description cost_options() {
  options::options_description all("Options");
  const auto text = [](const char* name) {
    return options::value<std::string>()->value_name(name);
  };
  add_cluster_options(all);
  auto add = all.add_options();
  add("workload", text("NAME|FILE"), "energy and cost of a step of this job, as for step");
  add("prices", text("FILE"), "prices and watts of parts, of a kWh, years of use");
  add_output_options(all);
  add_log_option(all);
  return all;
}

int run_cost(std::span<const std::string> arguments, std::ostream& out) {
  const options::variables_map values = parse_options("cost", arguments, cost_options(), {});
  const OptionReader reader("cost", values);
  if (reader.given("help")) {
    out << "trainyard cost --cluster NAME|FILE [options]\n\n" << cost_options() << kExample;
    return 0;
  }
  const std::string name = reader.required_text("cluster");
  ClusterOverrides overrides = cluster_overrides(reader);
  const std::optional<std::string> workload = reader.text("workload");
  std::vector<std::string> settings;
  if (workload) {
    settings = take_workload_settings(overrides);
  }
  const Format format = output_format(reader);
  const std::optional<std::string> file = output_file(reader, "output");
  spdlog::logger log = make_logger(reader);
  const Catalogue catalogue = load_default_catalogue();
  const Cluster cluster = load_cluster(find_config("clusters", name), catalogue, overrides);
  log_warnings(log, cluster.warnings);
  CostReport report{.cluster = cluster.name, .parts = {}, .costs = {}, .totals = {}};
  ConfigDocument shipped = ConfigDocument::load(configs_folder() / "costs" / "power.yaml");
  report.costs.read(shipped);
  if (const std::optional<std::string> prices = reader.text("prices")) {
    ConfigDocument own = ConfigDocument::load(*prices);
    report.costs.read(own);
  }
  report.parts = counted_parts(cluster.topology, report.costs);
  report.totals = totals_of(report.parts);
  if (workload) {
    report.step = step_cost(*workload, settings, cluster, catalogue);
  }
  write_output(file, render_cost(report, format), out);
  return 0;
}

}  // namespace trainyard
