// SPDX-License-Identifier: Apache-2.0
#include "report/steps/recommender_report.h"

#include <spdlog/fmt/fmt.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "parallelism/lowering/recommender_graph.h"
#include "report/formats/json.h"
#include "sim/check.h"

namespace trainyard {
namespace {

constexpr std::string_view kConvention = "3 x forward, without look-ups";

struct RecommenderFigure {
  std::string key;
  double value = 0.0;
};

struct NamedTime {
  std::string name;
  SimTime time;
};

double milliseconds(SimTime time) {
  return 1e3 * time.seconds();
}

std::vector<RecommenderFigure> recommender_figures(const RecommenderReport& report) {
  const double samples = report.samples_per_second();
  return {{"step_time_s", report.run->step.time.seconds()},
          {"samples_per_s", samples},
          {"samples_per_s_per_gpu", samples / report.run->ranks},
          {"model_tflops_per_gpu", report.flops_per_gpu() / 1e12},
          {"mfu", report.mfu()},
          {"memory_peak_gib", gibibytes(report.run->memory.device())}};
}

std::vector<NamedTime> recommender_parts(const RecommenderReport& report) {
  std::vector<NamedTime> parts;
  for (std::size_t index = 0; index < kStepParts; ++index) {
    const auto part = static_cast<StepPart>(index);
    const SimTime time = report.run->step.parts[part];
    const std::string_view name = recommender_part_name(part);
    CHECK(!name.empty() || time == SimTime(), "a part of a recommendation model has a name");
    if (!name.empty()) {
      parts.push_back({.name = std::string(name), .time = time});
    }
  }
  return parts;
}

std::size_t dealt_tables(const TableSharding& sharding, const RecommenderModel& model) {
  return model.tables.size() - sharding.split.tables.size() - sharding.replicated.tables.size();
}

std::string recommender_text(const RecommenderReport& report) {
  const RecommenderWorkload& workload = *report.workload;
  const RecommenderModel& model = workload.model;
  const RecommenderRun& run = *report.run;
  std::string text = fmt::format(
      "# Simulated by Trainyard: cluster {}, {} GPUs, runtime {}{}\n# {}: {}, software {}, {}\n"
      "# {} tables of {:.4g} parameters: {} dealt out, {} split, {} replicated; MLPs of {:.4g}\n"
      "# {} samples, {} of each rank; optimizers {} of tables, {} of MLPs\n#\n",
      report.cluster, run.ranks, report.runtime,
      report.fidelity.empty() ? "" : ", fidelity " + report.fidelity, workload.name, model.title,
      report.software, to_string(workload.precision), model.tables.size(),
      static_cast<double>(model.table_parameters()), dealt_tables(run.sharding, model),
      run.sharding.split.tables.size(), run.sharding.replicated.tables.size(),
      static_cast<double>(model.dense_parameters()), workload.batch, workload.batch / run.ranks,
      to_string(workload.table_optimizer), to_string(workload.dense_optimizer));
  text += fmt::format("step time              {:>12.4f} ms\n", milliseconds(run.step.time));
  text += fmt::format("samples                {:>12.1f} /s, {:.1f} /s for each GPU\n",
                      report.samples_per_second(), report.samples_per_second() / run.ranks);
  text += fmt::format(
      "model FLOP/s           {:>12.1f} T for each GPU, MFU {:.2f} % of {:.1f} T (convention: "
      "{})\n",
      report.flops_per_gpu() / 1e12, 100.0 * report.mfu(), run.peak / 1e12, kConvention);
  text += fmt::format("memory peak            {:>12.2f} GiB of {:.2f}{}\n\n",
                      gibibytes(run.memory.device()), gibibytes(run.memory_size),
                      report.fits() ? "" : ": DOES NOT FIT");
  Table table(
      {{.name = "part", .key = "part", .align = Align::Left, .unit = "", .min_width = 12},
       {.name = "time", .key = "time_ms", .align = Align::Right, .unit = "(ms)", .min_width = 10},
       {.name = "share", .key = "share", .align = Align::Right, .unit = "(%)", .min_width = 7}});
  for (const NamedTime& part : recommender_parts(report)) {
    if (part.time > SimTime()) {
      const double share = 100.0 * (part.time / run.step.time);
      table.add_row({Cell::of(part.name),
                     {fmt::format("{:.4f}", milliseconds(part.time)), milliseconds(part.time)},
                     {fmt::format("{:.2f}", share), share}});
    }
  }
  text += render_text(table);
  for (const std::string& note : report.notes) {
    text += "# Note: " + note + "\n";
  }
  return text;
}

std::string recommender_csv(const RecommenderReport& report) {
  std::vector<Column> columns;
  std::vector<Cell> cells;
  const auto add = [&](const std::string& key, Cell cell) {
    columns.push_back({.name = key, .key = key, .align = Align::Right, .unit = "", .min_width = 0});
    cells.push_back(std::move(cell));
  };
  add("cluster", Cell::of(report.cluster));
  add("workload", Cell::of(report.workload->name));
  add("gpus", Cell::of(std::int64_t{report.run->ranks}));
  for (const RecommenderFigure& figure : recommender_figures(report)) {
    add(figure.key, {"", figure.value});
  }
  add("memory_size_gib", {"", gibibytes(report.run->memory_size)});
  add("memory_fits", {"", report.fits()});
  add("mfu_convention", Cell::of(std::string(kConvention)));
  for (const NamedTime& part : recommender_parts(report)) {
    add(part.name + "_s", {"", part.time.seconds()});
  }
  Table table(std::move(columns));
  table.add_row(std::move(cells));
  return render_csv(table);
}

Json plan_json(const RecommenderReport& report) {
  const RecommenderWorkload& workload = *report.workload;
  const RecommenderRun& run = *report.run;
  Json json{{"data", run.ranks},
            {"global_batch", workload.batch},
            {"replicated_rows", workload.rules.replicated_rows},
            {"split_rows", workload.rules.split_rows},
            {"columns", workload.rules.columns},
            {"table_optimizer", std::string(to_string(workload.table_optimizer))},
            {"dense_optimizer", std::string(to_string(workload.dense_optimizer))}};
  return json;
}

Json tables_json(const RecommenderReport& report) {
  const TableSharding& sharding = report.run->sharding;
  Json json{{"dealt", dealt_tables(sharding, report.workload->model)},
            {"split", sharding.split.tables.size()},
            {"replicated", sharding.replicated.tables.size()},
            {"balance", sharding.balance()}};
  for (const TableShare& share : sharding.dealt) {
    json["of_rank"].push_back(share.tables);
  }
  return json;
}

void add_noise(const RecommenderReport& report, Json& root) {
  if (report.slow_rank) {
    root["slow_rank"] = {{"rank", report.slow_rank->rank},
                         {"factor", static_cast<double>(report.slow_rank->ppm) / 1e6}};
  }
  if (report.jitter.has_any()) {
    root["jitter"] = {{"ranks", static_cast<double>(report.jitter.rank_ppm) / 1e6},
                      {"operations", static_cast<double>(report.jitter.operation_ppm) / 1e6},
                      {"seed", report.jitter.seed}};
  }
}

std::string recommender_json(const RecommenderReport& report) {
  const RecommenderRun& run = *report.run;
  Json root;
  root["cluster"] = report.cluster;
  root["gpus"] = run.ranks;
  root["workload"] = report.workload->name;
  root["kind"] = "recommender";
  root["model"] = report.workload->model.title;
  root["software"] = report.software;
  root["precision"] = std::string(to_string(report.workload->precision));
  root["runtime"] = report.runtime;
  if (!report.fidelity.empty()) {
    root["fidelity"] = report.fidelity;
  }
  root["plan"] = plan_json(report);
  root["tables"] = tables_json(report);
  root["method"] = "graph";
  root["traffic"] = report.shares_network ? "shared" : "alone";
  add_noise(report, root);
  root["overlap"] = {
      {"input", run.overlaps_input}, {"tables", run.overlaps_tables}, {"data", run.overlaps_data}};
  root["settings"] = report.inputs.settings;
  for (const auto& [option, value] : report.inputs.options) {
    root["options"][option] = value;
  }
  for (const auto& [resource, value] : report.inputs.resources) {
    root["resources"][resource] = value;
  }
  for (const RecommenderFigure& figure : recommender_figures(report)) {
    root[figure.key] = figure.value;
  }
  root["mfu_convention"] = std::string(kConvention);
  root["mfu_peak_tflops"] = run.peak / 1e12;
  root["memory_size_gib"] = gibibytes(run.memory_size);
  root["memory_fits"] = report.fits();
  for (const MemoryClass each : kMemoryClasses) {
    root["memory_peak_by_class_gib"][std::string(to_string(each))] = gibibytes(run.memory[each]);
  }
  root["step_time_ps"] = run.step.time.picoseconds();
  root["breakdown_rank"] = run.step.busiest_rank;
  for (const NamedTime& part : recommender_parts(report)) {
    root["breakdown_s"][part.name] = part.time.seconds();
  }
  for (const NamedTime& part : recommender_parts(report)) {
    root["breakdown_ps"][part.name] = part.time.picoseconds();
  }
  root["notes"] = report.notes;
  return to_text(root);
}

}  // namespace

double RecommenderReport::samples_per_second() const {
  return static_cast<double>(workload->batch) / run->step.time.seconds();
}

double RecommenderReport::flops_per_gpu() const {
  return samples_per_second() * training_flops(workload->model) / run->ranks;
}

std::string render(const RecommenderReport& report, Format format) {
  switch (format) {
    case Format::Csv:
      return recommender_csv(report);
    case Format::Json:
      return recommender_json(report);
    case Format::Table:
      break;
  }
  return recommender_text(report);
}

}  // namespace trainyard
