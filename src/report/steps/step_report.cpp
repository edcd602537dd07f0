// SPDX-License-Identifier: Apache-2.0
#include "report/steps/step_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parallelism/operators/model_flops.h"
#include "parallelism/walk/gradient_compression.h"
#include "report/formats/json.h"
#include "report/results/volume_entries.h"

namespace trainyard {
namespace {

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
  if (plan.compression) {
    text += fmt::format(", gradients as {}", describe(*plan.compression));
  }
  const std::vector<std::string> offloaded = offloaded_parts(plan);
  if (!offloaded.empty()) {
    text += fmt::format(", {} on the host", fmt::join(offloaded, " and "));
  }
  return text;
}

std::string_view fit_text(const StepReport& report) {
  const Bytes needed = report.run->memory.device();
  if (needed <= report.run->memory_size) {
    return "";
  }
  return needed - report.run->memory[MemoryClass::Fragmentation] <= report.run->memory_size
             ? ": FITS WITHOUT FRAGMENTATION ALONE"
             : ": DOES NOT FIT";
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

void add_method(const StepReport& report, Document& document) {
  const bool is_graph = report.method == StepMethod::Graph;
  document.add("method", is_graph ? "graph" : "closed-forms", Shown::Json);
  if (is_graph) {
    document.add("traffic", report.setup.traffic(), Shown::Json);
  }
  add_noise(report.setup, document);
  document.add_detail("overlap", {{"tensor", report.run->overlap.tensor},
                                  {"data", report.run->overlap.data},
                                  {"pipeline", report.run->overlap.pipeline},
                                  {"expert", report.run->overlap.expert}});
  if (report.routing) {
    document.add_detail("routing", step_json(*report.routing));
  }
}

void add_host_memory(const std::optional<HostMemoryUse>& host, Document& document) {
  const double used = host ? gibibytes(host->hosted.total()) : 0.0;
  Figure figure{
      .key = "host_memory_gib", .cell = Cell::number(used, 2), .shown = Shown::Text | Shown::Csv};
  if (!host) {
    document.add(std::move(figure));
    return;
  }
  figure.label = "host memory";
  figure.unit = "GiB";
  figure.remark = fmt::format(
      " {}of a server{}", host->size ? fmt::format("of the {:.2f} ", gibibytes(*host->size)) : "",
      host->fits() ? "" : ": DOES NOT FIT");
  document.add(std::move(figure));
  document.add_detail("host_memory_gib", {{"optimizer", gibibytes(host->hosted.optimizer)},
                                          {"gradients", gibibytes(host->hosted.gradients)},
                                          {"activations", gibibytes(host->hosted.activations)}});
  if (host->size) {
    document.add("host_memory_size_gib", gibibytes(*host->size), Shown::Json);
  }
}

void add_step_figures(const StepReport& report, Document& document) {
  const int gpus = report.run->plan.ranks();
  const ModelFlops flops{.of_gpu = report.flops_per_gpu(),
                         .mfu = report.mfu(),
                         .peak = report.run->peak,
                         .convention = to_string(FlopsConvention::Model)};
  add_step_time(report.run->step.time, report.interval, TimeUnit::Seconds, document);
  add_rate("tokens", report.tokens_per_second(), gpus, document);
  if (report.has_images) {
    add_rate("images", report.samples_per_second(), gpus, document);
  }
  add_flops(flops, document);
  document.add("hfu", report.hfu());
  if (report.recomputed_of_token > 0.0) {
    document.add(Figure{.cell = Cell::number(report.hfu() * report.run->peak / 1e12, 1),
                        .label = "with recomputation",
                        .unit = "T",
                        .remark = fmt::format(" for each GPU, HFU {:.2f} % (convention: the same, "
                                              "and what is computed again)",
                                              100.0 * report.hfu()),
                        .shown = Shown::Text});
  }
  add_memory(report.run->memory, report.run->memory_size, report.fits(),
             std::string(fit_text(report)), document);
  add_host_memory(report.run->host_memory, document);
  add_compression(report.run->compression, document);
  add_convention(flops, document);
  add_memory_classes(report.run->memory, document);
}

// The figures that the page shows large.
void add_cards(const StepReport& report, Document& document) {
  const SimTime time = report.run->step.time;
  const std::optional<TimeInterval>& interval = report.interval;
  document.add_card(interval ? "step, and nine of ten" : "step",
                    interval ? fmt::format("{} ({} to {})", short_time(time),
                                           short_time(interval->low), short_time(interval->high))
                             : short_time(time));
  const double rate = report.tokens_per_second();
  document.add_card("tokens/s", interval ? fmt::format("{:.0f} ({:.0f} to {:.0f})", rate,
                                                       rate * (time / interval->high),
                                                       rate * (time / interval->low))
                                         : fmt::format("{:.0f}", rate));
  document.add_card("model FLOP/s of a GPU",
                    fmt::format("{:.1f} T", report.flops_per_gpu() / 1e12));
  document.add_card(fmt::format("MFU of {:.1f} T", report.run->peak / 1e12),
                    fmt::format("{:.2f} %", 100.0 * report.flops_per_gpu() / report.run->peak));
  document.add_card(
      "memory at its peak",
      fmt::format("{:.1f} of {:.1f} GiB{}", gibibytes(report.run->memory.device()),
                  gibibytes(report.run->memory_size), report.fits() ? "" : ": does not fit"));
  document.add_card("GPUs", std::to_string(report.run->plan.ranks()));
  if (report.has_images) {
    document.add_card("images/s", fmt::format("{:.0f}", report.samples_per_second()));
  }
  if (report.priced) {
    const StepCost& cost = report.priced->step;
    const auto million = cost.price_of_tokens(1e6);
    document.add_card("energy of a token",
                      cost.joules ? fmt::format("{:.3g} J", *cost.joules_of_token()) : "unknown");
    document.add_card(
        "a million tokens",
        million ? fmt::format("{:.4g} {}", *million, report.priced->cluster.costs.currency)
                : "cost unknown");
  }
}

std::string key_of(MemoryClass memory_class) {
  std::string key(to_string(memory_class));
  std::replace(key.begin(), key.end(), ' ', '_');
  return key + "_gib";
}

}  // namespace

bool StepReport::fits() const {
  return run->memory.device() <= run->memory_size &&
         (!run->host_memory || run->host_memory->fits());
}

double StepReport::tokens_per_second() const {
  return static_cast<double>(run->plan.global_batch) * static_cast<double>(run->plan.sequence) /
         run->step.time.seconds();
}

double StepReport::samples_per_second() const {
  return static_cast<double>(run->plan.global_batch) / run->step.time.seconds();
}

double StepReport::flops_per_gpu() const {
  return tokens_per_second() * flops_of_token / run->plan.ranks();
}

Document document_of(const StepReport& report) {
  const StepSetup& setup = report.setup;
  const ParallelPlan& plan = report.run->plan;
  Document document{.estimates = report.estimates, .notes = report.notes};
  add_setup(setup, document);
  document.heading.insert(
      document.heading.end(),
      {plan_text(plan),
       fmt::format("{} micro-batches of {} x {} tokens on each of {} data ranks",
                   plan.micro_batches(), plan.micro_batch, plan.sequence, plan.data),
       ""});
  document.add_detail("plan", step_json(plan));
  add_method(report, document);
  document.add(report.inputs);
  add_step_figures(report, document);
  document.add(Parts{
      .key = "step_time",
      .whole = report.run->step.time,
      .times = named_parts(report.run->step.parts, [](StepPart part) { return to_string(part); })});
  if (report.priced) {
    for (Figure& figure : cost_figures(*report.priced, "cost")) {
      document.add(std::move(figure));
    }
  }
  add_volumes("Bytes of a step on links, by tier", report.volumes, document);
  add_cards(report, document);
  return document;
}

std::string memory_profile_csv(const StepMemory& memory) {
  std::vector<Column> columns = key_columns({"rank", "position", "moment"});
  for (const MemoryClass each : kMemoryClasses) {
    columns.push_back({.name = key_of(each), .key = key_of(each)});
  }
  Table table(std::move(columns));
  for (const RankMemory& rank : memory.ranks) {
    for (std::size_t position = 0; position < rank.passes.size(); ++position) {
      const MemoryMoment moment = rank.moment(position);
      std::vector<Cell> cells{Cell::count(rank.rank), Cell::count(moment.position),
                              Cell::of(moment.where())};
      for (const MemoryClass each : kMemoryClasses) {
        cells.push_back({"", gibibytes(moment.use[each])});
      }
      table.add_row(std::move(cells));
    }
  }
  return render_csv(table);
}

}  // namespace trainyard
