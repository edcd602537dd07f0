// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/log.h"
#include "cli/common/options.h"
#include "cli/explain/explain_runs.h"
#include "cli/step/step_convolutional.h"
#include "cli/step/step_imported.h"
#include "cli/step/step_recommender.h"
#include "cli/step/step_request.h"
#include "parallelism/run/gpu_kinds.h"
#include "parallelism/traffic/link_traffic.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr std::string_view kExample =
    "Why it takes as long as it does: runs it again with each resource 10 % better and 10 % worse, "
    "and"
    R"(
says what the time follows and what does nothing, which links carry most and what of, which changes
would help most, and what the model leaves out. NCCL's choices are kept, so that the effect is that
of the resource alone. Sizes of a collective: the largest of those asked for in full, 1G if none is.
--threads N: runs at once (default: all cores); never changes a result.

Examples:
  trainyard explain step --cluster dgx-h100 --nodes 8 --workload mixtral-8x7b
  trainyard explain collective all_reduce --cluster dgx-h100 --nodes 4
  trainyard explain collective all_gather --cluster dgx-a100 --nodes 2 --runtime plain --algo bruck
)";

struct StepToExplain {
  const StepRequest& request;
  const Inputs& inputs;
  const StepRun& run;
};

// The step with another workload or software; no time where it does not fit.
SettingVariant variant(const StepToExplain& step, std::string what,
                       std::function<void(Inputs&)> change) {
  return {.what = std::move(what), .run = [&step, change = std::move(change)] {
            Inputs inputs = step.inputs;
            change(inputs);
            const StepRun run = run_step_inputs(step.request, inputs);
            const bool fits_host = !run.host_memory || run.host_memory->fits();
            const bool fits = run.memory.device() <= run.memory_size && fits_host;
            return fits ? std::optional(run.step.time) : std::nullopt;
          }};
}

void add_overlap_variants(const StepToExplain& step, std::vector<SettingVariant>& all) {
  const Overlap& now = step.run.overlap;
  const auto add = [&](bool is_on, std::string what, std::optional<bool> OverlapChoice::*part) {
    if (!is_on) {
      all.push_back(variant(step, fmt::format("overlap.{}: true", what),
                            [part](Inputs& inputs) { inputs.workload.overlap.*part = true; }));
    }
  };
  add(now.tensor, "tensor", &OverlapChoice::tensor);
  add(now.data, "data", &OverlapChoice::data);
  add(now.pipeline, "pipeline", &OverlapChoice::pipeline);
  add(now.expert, "expert", &OverlapChoice::expert);
}

void add_plan_variants(const StepToExplain& step, std::vector<SettingVariant>& all) {
  const ParallelPlan& plan = step.run.plan;
  const auto add = [&](std::string what, auto change) {
    all.push_back(
        variant(step, std::move(what), [change](Inputs& inputs) { change(inputs.workload.plan); }));
  };
  if (plan.recompute != Recompute::None) {
    add("plan.recompute: none", [](ParallelPlan& of) { of.recompute = Recompute::None; });
  }
  if (plan.recompute == Recompute::Full) {
    add("plan.recompute: selective", [](ParallelPlan& of) { of.recompute = Recompute::Selective; });
  }
  add(fmt::format("batch.micro: {}", 2 * plan.micro_batch),
      [](ParallelPlan& of) { of.micro_batch *= 2; });
  if (plan.micro_batch % 2 == 0) {
    add(fmt::format("batch.micro: {}", plan.micro_batch / 2),
        [](ParallelPlan& of) { of.micro_batch /= 2; });
  }
}

// Kernels of attention that the generations of all GPUs have rates for.
void add_attention_variants(const StepToExplain& step, std::vector<SettingVariant>& all) {
  const MachineModel& machine = step.inputs.machine;
  const GpuKinds kinds = gpu_kinds(machine.cluster);
  const auto have = [&](const std::string& kernel) {
    return std::ranges::all_of(kinds.models, [&](const GpuModel* gpu) {
      const auto generation = machine.rates.generations.find(gpu->architecture);
      return generation != machine.rates.generations.end() &&
             generation->second.attention.contains(kernel);
    });
  };
  const auto first = machine.rates.generations.find(kinds.models.front()->architecture);
  if (first == machine.rates.generations.end()) {
    return;
  }
  for (const auto& [kernel, rates] : first->second.attention) {
    if (kernel != machine.software.attention && have(kernel)) {
      all.push_back(
          variant(step, fmt::format("software with the attention of {}", kernel),
                  [name = kernel](Inputs& inputs) { inputs.machine.software.attention = name; }));
    }
  }
}

// Adds what no run of a step has.
void add_general_limits(const StepRequest& request, const std::vector<std::string>& beyond_profile,
                        std::vector<std::string>& limits) {
  if (!request.runtime.shares_network) {
    limits.emplace_back("congestion, PFC and ECN between groups, and traffic of other jobs");
  }
  limits.emplace_back("loading of data, checkpoints, failures and restarts, garbage collection");
  limits.emplace_back("clocks of GPUs that fall under power and heat, beyond the measured rates");
  for (const std::string& beyond : beyond_profile) {
    limits.push_back("the profile of NCCL was not fitted to " + beyond);
  }
}

std::vector<std::string> limits_of(const StepRequest& request, const StepRun& run) {
  std::vector<std::string> limits;
  if (!request.runtime.shares_network) {
    limits.emplace_back(
        "traffic of different kinds does not slow each other down: groups of one kind share "
        "links, what else meets on a link is only counted");
  }
  if (!run.graph) {
    limits.emplace_back(
        "overlap is by closed forms: no order of single operations (--method graph has it)");
  } else {
    limits.emplace_back("traffic and computation slow each other down by fixed factors alone");
  }
  if (run.plan.offload.any()) {
    limits.emplace_back("copies to and from the host are not counted on links");
  }
  limits.emplace_back(
      "the spread between ranks is a share of the step, not a resource: it follows the others");
  add_general_limits(request, run.beyond_profile, limits);
  return limits;
}

RunExplanation explain(const StepRequest& request, unsigned threads, spdlog::logger& log) {
  const Inputs inputs = load_inputs(request.inputs, log);
  if (inputs.workload.plan.servers) {
    throw ConfigError("explain: expected a plan without parameter servers, found plan.servers");
  }
  const StepRun run = watched_run(request, inputs, log);
  const StepToExplain step{.request = request, .inputs = inputs, .run = run};
  RunExplanation made;
  made.factor = kExplainFactor;
  made.header = {fmt::format("Explained by Trainyard: a step of {} on {}, {} GPUs, runtime {}",
                             inputs.workload.name, inputs.machine.cluster.name, run.plan.ranks(),
                             request.runtime.name())};
  made.times = explain_times(
      {.machine = inputs.machine,
       .resources = resources_of(inputs.machine.cluster,
                                 {.nccl = request.runtime.nccl.has_value(), .compute = true}),
       .labels = {{.label = "step", .how = ""}},
       .threads = threads},
      [&](const MachineModel& machine) {
        return std::vector<SimTime>{run_step_inputs(request, inputs.workload, machine).step.time};
      });
  std::vector<SettingVariant> variants;
  add_overlap_variants(step, variants);
  add_plan_variants(step, variants);
  add_attention_variants(step, variants);
  add_settings(variants, threads, made.times.front());
  if (const auto traffic = counted_traffic(request, inputs, run)) {
    add_links(inputs.machine.cluster, *traffic, made.times.front());
    made.notes.emplace_back(
        "busiest links: all groups of the step counted on the ways that their calls take");
  } else {
    made.notes.push_back(
        fmt::format("links are not counted for more than {} GPUs", kMaxCountedRanks));
  }
  made.limits = limits_of(request, run);
  add_job_note(request.inputs, made.notes);
  made.notes.emplace_back("nothing has a price here: improvements are in order of their effect");
  add_part_notes(inputs.machine.cluster, request.inputs, made.notes);
  return made;
}

// The same of a workload that has no closed forms.
RunExplanation explain_lowered(const StepRequest& request, const LoweredJob& job,
                               unsigned threads) {
  const Cluster& cluster = job.machine.cluster;
  const LoweredRun run = job.run(job.machine);
  RunExplanation made;
  made.factor = kExplainFactor;
  made.header = {fmt::format("Explained by Trainyard: a step of {} on {}, {} GPUs, runtime {}",
                             job.name, cluster.name, run.gpus(), request.runtime.name())};
  made.times =
      explain_times({.machine = job.machine,
                     .resources = resources_of(
                         cluster, {.nccl = request.runtime.nccl.has_value(), .compute = true}),
                     .labels = {{.label = "step", .how = ""}},
                     .threads = threads},
                    [&](const MachineModel& machine) {
                      return std::vector<SimTime>{job.run(machine).step.time};
                    });
  std::vector<SettingVariant> variants;
  for (const auto& setting : job.settings) {
    variants.push_back({.what = setting.first, .run = [&job, &setting] {
                          const LoweredRun other = setting.second(job.machine);
                          return other.fits() ? std::optional(other.step.time) : std::nullopt;
                        }});
  }
  add_settings(variants, threads, made.times.front());
  if (const auto traffic =
          counted_traffic(request, cluster, run.graph, job.machine.nccl, job.part_name)) {
    add_links(cluster, *traffic, made.times.front());
    made.notes.emplace_back(
        "busiest links: all groups of the step counted on the ways that their calls take");
  } else {
    made.notes.push_back(
        fmt::format("links are not counted for more than {} GPUs", kMaxCountedRanks));
  }
  add_general_limits(request, run.beyond_profile, made.limits);
  made.notes.emplace_back("nothing has a price here: improvements are in order of their effect");
  add_part_notes(cluster, request.inputs, made.notes);
  return made;
}

int run_explain_step(const OptionReader& reader, std::ostream& out) {
  if (imported_format(reader)) {
    throw ConfigError(
        "explain: expected a workload in YAML, found one of another tool, whose times are given");
  }
  const bool has_images = is_of_kind(reader, "convolutional");
  const bool has_tables = is_of_kind(reader, "recommender");
  const StepRequest request = has_images   ? read_graph_request(reader, "a convolutional network")
                              : has_tables ? read_graph_request(reader, "a recommendation model")
                                           : read_step_request(reader);
  const unsigned threads = read_threads(reader);
  spdlog::logger log = make_logger(reader);
  const RunExplanation made =
      has_images   ? explain_lowered(request, convolutional_job(request, log), threads)
      : has_tables ? explain_lowered(request, recommender_job(request, log), threads)
                   : explain(request, threads, log);
  write_result(request.result, with_effects(reader, document_of(made)), out);
  return 0;
}

}  // namespace

Command explain_command() {
  return {.name = "explain",
          .form = "explain step|collective",
          .summary = "which resources the time follows, and what would help",
          .usage =
              "explain step [options of trainyard step]\n"
              "trainyard explain collective OP [options of trainyard collective]",
          .example = kExample,
          .parts = {explain_step(), explain_collective()}};
}

Command explain_step() {
  return {.name = "explain",
          .form = "explain step",
          .usage = "explain step --cluster NAME|FILE --workload|--model NAME|FILE [options]",
          .options = joined({without("costs memory prices threads trace", step_command().options),
                             Options{threads_option()}}),
          .run = run_explain_step};
}

}  // namespace trainyard
