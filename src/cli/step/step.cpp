// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "calibration/training/step_intervals.h"
#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/html_output.h"
#include "cli/common/log.h"
#include "cli/common/mixed_options.h"
#include "cli/common/options.h"
#include "cli/common/packet_options.h"
#include "cli/step/step_convolutional.h"
#include "cli/step/step_html.h"
#include "cli/step/step_imported.h"
#include "cli/step/step_recommender.h"
#include "cli/step/step_request.h"
#include "parallelism/closed_forms/idle_settings.h"
#include "parallelism/memory/step_memory.h"
#include "parallelism/model/adapters.h"
#include "parallelism/operators/model_flops.h"
#include "parallelism/run/step_cost.h"
#include "parallelism/run/step_run.h"
#include "report/formats/output.h"
#include "report/formats/trace.h"
#include "report/steps/cost_report.h"
#include "report/steps/step_report.h"
#include "report/steps/step_trace.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr std::string_view kExample = R"(
The workload says model, plan, batch, precision and software: a file, or a name in
configs/workloads. A --set whose first key is model, adapters, software, precision, plan, batch,
overlap, routing or optimizer changes the workload; any other the cluster.

Examples:
  trainyard step --cluster superpod-a100 --nodes 128 --workload gpt-3-175b
  trainyard step --cluster superpod-h100 --nodes 8 --workload mixtral-8x7b --set plan.expert=8
  trainyard step --cluster dgx-h100 --workload my-job.yaml --set batch.micro=2 --format json
  trainyard step --cluster superpod-a100 --nodes 128 --workload gpt-3-175b --method graph \
      --trace step.json
  trainyard step --cluster dgx-a100 --workload dlrm-dcnv2 --set plan.columns=2
  trainyard step --cluster dgx-1 --nodes 1 --workload resnet-50 --set batch.micro=128
  trainyard step --cluster dgx-h100 --workload schedule.goal
)";

std::string servers_note(const ParameterServerRun& run, const ParameterServers& servers) {
  const std::string consistency = !servers.bound       ? "asynchronous"
                                  : *servers.bound > 0 ? fmt::format("bound {}", *servers.bound)
                                                       : "synchronous";
  return fmt::format(
      "{} workers and {} parameter servers on {}, {}: the mean of {} steps; weights are {:.2f} "
      "steps old on average and {} at most (docs/models/parameter-servers.md)",
      run.workers, run.servers, servers.on_workers ? "their hosts" : "hosts of their own",
      consistency, run.steps, run.staleness.mean, run.staleness.max);
}

std::string method_note(const StepRun& run, bool has_jitter) {
  if (run.servers) {
    return servers_note(*run.servers, *run.plan.servers);
  }
  if (!run.graph) {
    return "closed forms: overlap of gradients and weights with passes, of tensor and context "
           "traffic with products; jitter; optimizer (docs/models/step.md)";
  }
  const OperationGraph& graph = run.graph->lowered.graph;
  const std::size_t folded = static_cast<std::size_t>(graph.ranks()) / graph.present().size();
  return fmt::format(
      "a graph of {} operations on {} ranks{} (docs/models/step-graph.md){}",
      graph.operations().size(), graph.present().size(),
      folded > 1 ? fmt::format(", of which each represents {} that do the same", folded) : "",
      has_jitter ? "" : "; closed forms: jitter");
}

// Notes the share of its rate that the others of its kind leave a group.
std::optional<std::string> sharing_note(const StepRun& run) {
  constexpr double kNotWorthTelling = 0.995;
  if (run.min_share > kNotWorthTelling) {
    return std::nullopt;
  }
  return fmt::format(
      "groups of one kind that work at the same time share links: one of them gets {:.2g} times "
      "the rate that it has alone (docs/models/step.md)",
      run.min_share);
}

// Says where routing hardly changes the time, though it changes the parts.
std::optional<std::string> launch_note(const Workload& workload, const StepRun& run) {
  constexpr double kMost = 0.5;
  const double share = run.step.parts[StepPart::Host].real_picoseconds() /
                       std::max(1.0, run.step.time.real_picoseconds());
  if (!has_experts(workload.model) || workload.routing.is_even() || run.plan.expert == 1 ||
      run.servers || share < kMost) {
    return std::nullopt;
  }
  return fmt::format(
      "routing: GPUs wait for launches in {:.0f} % of the step, and what the fullest expert rank "
      "has more than others shortens that wait before it changes the time",
      100.0 * share);
}

std::string collectives_note(const StepRequest& request, const StepRun& run) {
  return fmt::format(
      "collectives run {}, each group beside the others of its kind: {} of {} simulated, the "
      "others are equal ones",
      request.runtime.how(), run.simulated, run.calls);
}

std::vector<std::string> notes_of(const StepRequest& request, const Workload& workload,
                                  const SoftwareProfile& software, const StepRun& run) {
  std::vector<std::string> notes{method_note(run, request.jitter.has_any())};
  if (!run.servers) {
    notes.push_back(request.runtime.shares_network
                        ? "collectives run as plain rings, all groups at once on one network"
                        : collectives_note(request, run));
  }
  add_network_notes(request, run.packets, run.extras, notes);
  if (const auto note = request.runtime.shares_network ? std::nullopt : sharing_note(run)) {
    notes.push_back(*note);
  }
  notes.insert(notes.end(), request.runtime.notes.begin(), request.runtime.notes.end());
  const auto word = [](bool overlaps) {
    return overlaps ? "overlapped with computation" : "exposed";
  };
  notes.push_back(
      fmt::format("software {}: attention {}, {} operators; tensor traffic {}, data "
                  "traffic {}, transfers between stages {}",
                  software.name, software.attention, software.fusion, word(run.overlap.tensor),
                  word(run.overlap.data), word(run.overlap.pipeline)));
  const auto noise = describe_noise(request.slow_rank, request.jitter);
  if (noise && run.servers) {
    notes.push_back(*noise);
  }
  if (noise && run.usual_time) {
    notes.push_back(
        fmt::format("{}: without it the step takes {:.4f} s", *noise, run.usual_time->seconds()));
  }
  if (!run.beyond_profile.empty()) {
    notes.push_back(fmt::format("beyond what the profile was fitted to: {}",
                                fmt::join(run.beyond_profile, "; ")));
  }
  if (run.kinds_note) {
    notes.push_back(*run.kinds_note);
  }
  if (run.compression) {
    notes.push_back(run.compression->note());
  }
  notes.push_back(run.memory_verdict);
  if (run.host_memory) {
    notes.push_back(run.host_memory->verdict());
  }
  if (workload.model.adapters) {
    notes.push_back(describe_adapters(workload.model));
  }
  if (has_experts(workload.model) && workload.routing.is_even()) {
    notes.emplace_back("tokens are spread evenly over experts");
  }
  if (const auto note = launch_note(workload, run)) {
    notes.push_back(*note);
  }
  const std::vector<std::string> idle = idle_settings(workload, run.plan, software);
  if (!idle.empty()) {
    notes.push_back(fmt::format("without effect: {}", fmt::join(idle, "; ")));
  }
  return notes;
}

std::optional<RunCounts> counts_of_run(const StepRequest& request, const Cluster& cluster,
                                       const StepRun& run) {
  if (run.servers) {
    return std::nullopt;
  }
  const std::size_t operations = run.graph ? run.graph->lowered.graph.operations().size() : 0;
  return counts_of(request, cluster, run.simulated, operations);
}

void add_interval(const Workload& workload, const StepRun& run, bool is_measured,
                  StepReport& report) {
  const PredictionKind kind =
      kind_of(is_measured, has_experts(workload.model), waits_for_host(run.step));
  const SimTime time = run.step.time;
  // All that is computed, at the peak.
  const SimTime bound(std::llround(static_cast<double>(time.picoseconds()) * report.hfu()));
  report.interval =
      bounded(around(time, StepIntervals::load(step_intervals_file()).band(kind)), time, bound);
  report.notes.push_back(
      fmt::format("nine measured steps in ten were within such bounds, of {}",
                  kind.is_measured ? "sources that no constant was fitted to"
                                   : "generations of GPUs that took the shares of the others"));
}

void predict(const OptionReader& reader, const StepRequest& request, spdlog::logger& log,
             std::ostream& out) {
  const Inputs inputs = load_inputs(request.inputs, log);
  const Cluster& cluster = inputs.machine.cluster;
  const Workload& workload = inputs.workload;
  const SoftwareProfile& software = inputs.machine.software;
  if (workload.plan.servers && request.trace) {
    throw ConfigError("--trace: expected a plan without parameter servers, found plan.servers");
  }
  const std::optional<ClusterCosts> costs =
      request.costs ? std::optional(load_costs(*request.costs, cluster)) : std::nullopt;
  const StepRun run = watched_run(request, inputs, log);
  if (request.trace || request.memory) {
    const StepMemory memory = step_memory(workload.model, run.held, software, workload.routing);
    if (request.trace && run.graph) {
      TraceRecorder recorder;
      record_step(*run.graph, recorder, &memory);
      write_file(*request.trace, chrome_trace(recorder));
    }
    if (request.memory) {
      write_file(*request.memory, memory_profile_csv(memory));
    }
  }
  StepReport report{
      .setup = setup_of(request, cluster, workload.name, run.plan.ranks()),
      .run = &run,
      .flops_of_token = training_flops(workload.model, run.plan.sequence, FlopsConvention::Model),
      .recomputed_of_token =
          recomputed_flops(workload.model, run.plan.sequence, run.plan.recompute, software),
      .method = request.method,
      .routing = has_experts(workload.model) ? std::optional(workload.routing) : std::nullopt,
      .has_images = workload.model.patches.has_value()};
  report.setup.model = workload.model.title;
  report.setup.software = software.name;
  report.setup.precision = to_string(workload.precision);
  report.notes = notes_of(request, workload, software, run);
  add_job_note(request.inputs, report.notes);
  const std::vector<std::string> unmeasured = unmeasured_notes(inputs.machine.rates, cluster);
  if (!run.servers && !request.slow_rank && !request.jitter.has_any()) {
    add_interval(workload, run, unmeasured.empty(), report);
  }
  report.notes.insert(report.notes.end(), unmeasured.begin(), unmeasured.end());
  report.inputs = step_run_inputs(request, inputs);
  report.estimates = cluster.estimates;
  add_part_notes(cluster, request.inputs, report.notes);
  if (costs) {
    for (std::string& note : cost_notes(*costs)) {
      report.notes.push_back(std::move(note));
    }
    const StepCost cost = step_cost(*costs, run.plan, run.step);
    report.priced = {.cluster = *costs, .step = cost};
  }
  const std::optional<std::vector<LinkTraffic>> traffic = counted_traffic(request, inputs, run);
  if (traffic) {
    report.volumes =
        tier_volumes(LinkResources(cluster.topology, cluster.routing.fabric), *traffic);
  }
  const Document document =
      with_effects(reader, document_of(report), counts_of_run(request, cluster, run));
  write_result(request.result, document, out,
               [&] { return step_html(request, inputs, run, traffic, document); });
}

// Options that workloads of other tools do not have, and what the refusal adds.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOptionsOfOurOwn{
    {{"model", ""},
     {"costs", ""},
     {"prices", ""},
     {"memory", ", of which nobody says what it holds"}}};

int run_step(const OptionReader& reader, std::ostream& out) {
  if (const std::optional<ImportedFormat> format = imported_format(reader)) {
    for (const auto& [name, reason] : kOptionsOfOurOwn) {
      if (reader.given(name)) {
        throw ConfigError(
            fmt::format("--{}: expected a workload of Trainyard's own, found one of another tool{}",
                        name, reason));
      }
    }
    return run_imported_step(reader, *format, out);
  }
  if (is_of_kind(reader, "recommender")) {
    return run_recommender_step(reader, out);
  }
  if (is_of_kind(reader, "convolutional")) {
    return run_convolutional_step(reader, out);
  }
  const StepRequest request = read_step_request(reader);
  spdlog::logger log = make_logger(reader);
  predict(reader, request, log, out);
  return 0;
}

}  // namespace

Command step_command() {
  constexpr std::string_view kOnPackets = "traffic=shared fidelity=packet|mixed";
  return {
      .name = "step",
      .form = "step",
      .summary = "time of a training step of a model and a plan, and what it is spent on",
      .usage = "step --cluster NAME|FILE --workload|--model NAME|FILE [options]",
      .options = joined(
          {cluster_options(),
           Options{
               {"workload",
                "NAME|FILE",
                "the job: a file, or a name in configs/workloads; or a workload of another tool",
                {.role = Role::Input, .names = "workloads", .synonyms = "job"}},
               model_option(),
               estimates_option()},
           imported_options(), runtime_options(HasMixed::Yes),
           Options{{"gpu-rates", "FILE", "rates of kernels, as trainyard calibrate writes them",
                    kInput},
                   {"method",
                    "NAME",
                    "closed-forms (the default), or graph: every operation of the step in "
                    "simulated time",
                    {.choices = "closed-forms|graph"}}},
           noise_options(),
           Options{{"traffic",
                    "NAME",
                    "with graph: alone (the default), each group beside those of its kind; shared, "
                    "every rank is simulated, with all traffic on one network",
                    {.choices = "alone|shared"}},
                   packets_option("of mixed: calls=KIND (tensor, context, pipeline, data or "
                                  "expert), device=NAME, link=A,B (what crosses it) or crowd=N "
                                  "(where so many share a link); names may be patterns; may be "
                                  "given again"),
                   message_times_option("traffic=shared"),
                   packet_threads_option(kOnPackets),
                   {"trace", "FILE", "with graph: the time line, for Perfetto or chrome://tracing",
                    kResult}},
           sending_options(kOnPackets), cost_options(),
           Options{{"memory", "FILE",
                    "CSV: what each rank of a pipeline holds in each of its passes", kResult}},
           output_options(), log_options()}),
      .example = kExample,
      .run = run_step,
      .is_swept = true};
}

}  // namespace trainyard
