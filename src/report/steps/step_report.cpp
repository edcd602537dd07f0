// SPDX-License-Identifier: Apache-2.0
#include "report/steps/step_report.h"

#include <spdlog/fmt/fmt.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/formats/json.h"

namespace trainyard {
namespace {

struct StepFigure {
  std::string key;
  double value = 0.0;
};

std::vector<StepFigure> step_figures(const StepReport& report) {
  std::vector<StepFigure> figures{
      {"step_time_s", report.step.time.seconds()},
      {"tokens_per_s", report.tokens_per_second()},
      {"tokens_per_s_per_gpu", report.tokens_per_second() / report.plan.ranks()}};
  if (report.has_images) {
    figures.push_back({"images_per_s", report.samples_per_second()});
    figures.push_back({"images_per_s_per_gpu", report.samples_per_second() / report.plan.ranks()});
  }
  figures.push_back({"model_tflops_per_gpu", report.flops_per_gpu() / 1e12});
  figures.push_back({"mfu", report.mfu()});
  figures.push_back({"hfu", report.hfu()});
  figures.push_back({"memory_peak_gib", gibibytes(report.memory.device())});
  return figures;
}

std::vector<std::string> offloaded_parts(const ParallelPlan& plan) {
  std::vector<std::string> parts;
  if (plan.offload.optimizer) {
    parts.emplace_back("optimizer");
  }
  if (plan.offload.activations) {
    parts.emplace_back("activations");
  }
  return parts;
}

// "tensor 8, pipeline 16 (interleaved, 2 chunks), data 8".
std::string plan_text(const ParallelPlan& plan) {
  std::string text = fmt::format("tensor {}{}", plan.tensor,
                                 plan.has_sequence_parallelism ? " with sequence" : "");
  if (plan.context > 1) {
    text += fmt::format(", context {}", plan.context);
  }
  text += fmt::format(", pipeline {}", plan.pipeline);
  if (plan.pipeline > 1) {
    text += fmt::format(" ({}, {} chunks)", to_string(plan.schedule), plan.chunks);
  }
  text += fmt::format(", data {}", plan.data);
  if (plan.expert * plan.expert_tensor > 1) {
    text += fmt::format(", expert {} x {}", plan.expert, plan.expert_tensor);
  }
  if (plan.servers) {
    text += fmt::format(", {} parameter servers{}", plan.servers->count,
                        plan.servers->on_workers ? " on their hosts" : "");
  }
  if (plan.zero_stage > 0) {
    text += fmt::format(", ZeRO {} over {}", plan.zero_stage, plan.shards());
  }
  const std::vector<std::string> offloaded = offloaded_parts(plan);
  if (!offloaded.empty()) {
    text += fmt::format(", {} on the host", fmt::join(offloaded, " and "));
  }
  return text;
}

std::string_view fit_text(const StepReport& report) {
  const Bytes needed = report.memory.device();
  if (needed <= report.memory_size) {
    return "";
  }
  return needed - report.memory[MemoryClass::Fragmentation] <= report.memory_size
             ? ": FITS WITHOUT FRAGMENTATION ALONE"
             : ": DOES NOT FIT";
}

std::string host_memory_text(const HostMemoryUse& host) {
  return fmt::format("host memory            {:>12.2f} GiB {}of a server{}\n",
                     gibibytes(host.hosted.total()),
                     host.size ? fmt::format("of the {:.2f} ", gibibytes(*host.size)) : "",
                     host.fits() ? "" : ": DOES NOT FIT");
}

std::string step_text(const StepReport& report) {
  const ParallelPlan& plan = report.plan;
  std::string text = fmt::format(
      "# Simulated by Trainyard: cluster {}, {} GPUs, runtime {}{}\n# {}: {}, software {}, {}\n"
      "# {}\n# {} micro-batches of {} x {} tokens on each of {} data ranks\n#\n",
      report.cluster, plan.ranks(), report.runtime,
      report.fidelity.empty() ? "" : ", fidelity " + report.fidelity, report.workload, report.model,
      report.software, report.precision, plan_text(plan), plan.micro_batches(), plan.micro_batch,
      plan.sequence, plan.data);
  text += fmt::format("step time              {:>12.4f} s\n", report.step.time.seconds());
  text += fmt::format("tokens                 {:>12.1f} /s, {:.1f} /s for each GPU\n",
                      report.tokens_per_second(), report.tokens_per_second() / plan.ranks());
  if (report.has_images) {
    text += fmt::format("images                 {:>12.1f} /s, {:.1f} /s for each GPU\n",
                        report.samples_per_second(), report.samples_per_second() / plan.ranks());
  }
  text += fmt::format(
      "model FLOP/s           {:>12.1f} T for each GPU, MFU {:.2f} % of {:.1f} T (convention: "
      "{})\n",
      report.flops_per_gpu() / 1e12, 100.0 * report.mfu(), report.peak / 1e12,
      to_string(report.convention));
  if (report.recomputed_of_token > 0.0) {
    text += fmt::format(
        "with recomputation     {:>12.1f} T for each GPU, HFU {:.2f} % (convention: the same, and "
        "what is computed again)\n",
        report.hfu() * report.peak / 1e12, 100.0 * report.hfu());
  }
  text += fmt::format("memory peak            {:>12.2f} GiB of {:.2f}{}\n",
                      gibibytes(report.memory.device()), gibibytes(report.memory_size),
                      fit_text(report));
  if (report.host_memory) {
    text += host_memory_text(*report.host_memory);
  }
  text += report.priced ? cost_text(*report.priced) : "";
  text += "\n";
  Table table(
      {{.name = "part", .key = "part", .align = Align::Left, .unit = "", .min_width = 12},
       {.name = "time", .key = "time_s", .align = Align::Right, .unit = "(s)", .min_width = 10},
       {.name = "share", .key = "share", .align = Align::Right, .unit = "(%)", .min_width = 7}});
  for (std::size_t index = 0; index < kStepParts; ++index) {
    const SimTime time = report.step.parts.times[index];
    if (time > SimTime()) {
      const double share = 100.0 * (time / report.step.time);
      table.add_row({Cell::of(std::string(to_string(static_cast<StepPart>(index)))),
                     {fmt::format("{:.4f}", time.seconds()), time.seconds()},
                     {fmt::format("{:.2f}", share), share}});
    }
  }
  text += render_text(table);
  for (const std::string& note : report.notes) {
    text += "# Note: " + note + "\n";
  }
  return text;
}

std::string step_csv(const StepReport& report) {
  std::vector<Column> columns;
  std::vector<Cell> cells;
  const auto add = [&](const std::string& key, Cell cell) {
    columns.push_back({.name = key, .key = key, .align = Align::Right, .unit = "", .min_width = 0});
    cells.push_back(std::move(cell));
  };
  add("cluster", Cell::of(report.cluster));
  add("workload", Cell::of(report.workload));
  add("gpus", Cell::of(std::int64_t{report.plan.ranks()}));
  for (const StepFigure& figure : step_figures(report)) {
    add(figure.key, {"", figure.value});
  }
  add("memory_size_gib", {"", gibibytes(report.memory_size)});
  add("memory_fits", {"", report.fits()});
  add("host_memory_gib",
      {"", report.host_memory ? gibibytes(report.host_memory->hosted.total()) : 0.0});
  add("mfu_convention", Cell::of(std::string(to_string(report.convention))));
  for (std::size_t index = 0; index < kStepParts; ++index) {
    add(fmt::format("{}_s", to_string(static_cast<StepPart>(index))),
        {"", report.step.parts.times[index].seconds()});
  }
  if (report.priced) {
    for (auto& [key, cell] : cost_cells(*report.priced)) {
      add(key, std::move(cell));
    }
  }
  Table table(std::move(columns));
  table.add_row(std::move(cells));
  return render_csv(table);
}

Json step_json(const ParallelPlan& plan) {
  Json json{{"tensor", plan.tensor},
            {"sequence_parallel", plan.has_sequence_parallelism},
            {"context", plan.context},
            {"context_kind", std::string(to_string(plan.context_kind))},
            {"pipeline", plan.pipeline},
            {"schedule", std::string(to_string(plan.schedule))},
            {"chunks", plan.chunks},
            {"data", plan.data},
            {"expert", plan.expert},
            {"expert_tensor", plan.expert_tensor},
            {"zero_stage", plan.zero_stage},
            {"shards", plan.shards()},
            {"recompute", std::string(to_string(plan.recompute))},
            {"offload", offloaded_parts(plan)},
            {"stage_layers", plan.stage_layers},
            {"micro_batch", plan.micro_batch},
            {"global_batch", plan.global_batch},
            {"sequence", plan.sequence}};
  for (const PlanAxis axis : plan.order) {
    json["order"].push_back(std::string(to_string(axis)));
  }
  if (plan.servers) {
    json["servers"] = {{"count", plan.servers->count},
                       {"place", plan.servers->on_workers ? "workers" : "own"},
                       {"steps", plan.servers->steps}};
    json["servers"]["bound"] = plan.servers->bound ? Json(*plan.servers->bound) : Json();
  }
  return json;
}

Json step_json(const ExpertLoads& loads) {
  Json json{{"imbalance", loads.imbalance}};
  json["capacity"] = loads.capacity ? Json(*loads.capacity) : Json();
  json["layers"] = Json::array();
  for (const ExpertLoads::Layers& run : loads.layers) {
    json["layers"].push_back({{"first", run.first}, {"last", run.last}, {"loads", run.loads}});
  }
  return json;
}

void add_method(const StepReport& report, Json& root) {
  const bool is_graph = report.method == StepMethod::Graph;
  root["method"] = is_graph ? "graph" : "closed-forms";
  if (is_graph) {
    root["traffic"] = report.shares_network ? "shared" : "alone";
  }
  if (report.slow_rank) {
    root["slow_rank"] = {{"rank", report.slow_rank->rank},
                         {"factor", static_cast<double>(report.slow_rank->ppm) / 1e6}};
  }
  if (report.jitter.has_any()) {
    root["jitter"] = {{"ranks", static_cast<double>(report.jitter.rank_ppm) / 1e6},
                      {"operations", static_cast<double>(report.jitter.operation_ppm) / 1e6},
                      {"seed", report.jitter.seed}};
  }
  root["overlap"] = {{"tensor", report.overlap.tensor},
                     {"data", report.overlap.data},
                     {"pipeline", report.overlap.pipeline},
                     {"expert", report.overlap.expert}};
  if (report.routing) {
    root["routing"] = step_json(*report.routing);
  }
}

std::string step_json(const StepReport& report) {
  const ParallelPlan& plan = report.plan;
  Json root;
  root["cluster"] = report.cluster;
  root["gpus"] = plan.ranks();
  root["workload"] = report.workload;
  root["model"] = report.model;
  root["software"] = report.software;
  root["precision"] = report.precision;
  root["runtime"] = report.runtime;
  if (!report.fidelity.empty()) {
    root["fidelity"] = report.fidelity;
  }
  root["plan"] = step_json(plan);
  add_method(report, root);
  root["settings"] = report.inputs.settings;
  for (const auto& [option, value] : report.inputs.options) {
    root["options"][option] = value;
  }
  for (const auto& [resource, value] : report.inputs.resources) {
    root["resources"][resource] = value;
  }
  for (const StepFigure& figure : step_figures(report)) {
    root[figure.key] = figure.value;
  }
  root["mfu_convention"] = std::string(to_string(report.convention));
  root["mfu_peak_tflops"] = report.peak / 1e12;
  root["memory_size_gib"] = gibibytes(report.memory_size);
  root["memory_fits"] = report.fits();
  if (report.host_memory) {
    const HostedMemory& hosted = report.host_memory->hosted;
    root["host_memory_gib"] = {{"optimizer", gibibytes(hosted.optimizer)},
                               {"gradients", gibibytes(hosted.gradients)},
                               {"activations", gibibytes(hosted.activations)}};
    if (report.host_memory->size) {
      root["host_memory_size_gib"] = gibibytes(*report.host_memory->size);
    }
  }
  for (const MemoryClass each : kMemoryClasses) {
    root["memory_peak_by_class_gib"][std::string(to_string(each))] = gibibytes(report.memory[each]);
  }
  if (report.priced) {
    root["cost"] = to_json(cost_table(*report.priced)).front();
  }
  root["step_time_ps"] = report.step.time.picoseconds();
  for (std::size_t index = 0; index < kStepParts; ++index) {
    const std::string name(to_string(static_cast<StepPart>(index)));
    root["breakdown_s"][name] = report.step.parts.times[index].seconds();
  }
  for (std::size_t index = 0; index < kStepParts; ++index) {
    const std::string name(to_string(static_cast<StepPart>(index)));
    root["breakdown_ps"][name] = report.step.parts.times[index].picoseconds();
  }
  root["notes"] = report.notes;
  return to_text(root);
}

}  // namespace

bool StepReport::fits() const {
  return memory.device() <= memory_size && (!host_memory || host_memory->fits());
}

double StepReport::tokens_per_second() const {
  return static_cast<double>(plan.global_batch) * static_cast<double>(plan.sequence) /
         step.time.seconds();
}

double StepReport::samples_per_second() const {
  return static_cast<double>(plan.global_batch) / step.time.seconds();
}

double StepReport::flops_per_gpu() const {
  return tokens_per_second() * flops_of_token / plan.ranks();
}

std::string render(const StepReport& report, Format format) {
  switch (format) {
    case Format::Csv:
      return step_csv(report);
    case Format::Json:
      return step_json(report);
    case Format::Table:
      break;
  }
  return step_text(report);
}

}  // namespace trainyard
