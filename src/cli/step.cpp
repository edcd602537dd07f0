// SPDX-License-Identifier: Apache-2.0
#include "cli/step.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/collective_rows.h"
#include "cli/common.h"
#include "cli/log.h"
#include "cli/options.h"
#include "cli/step_foreign.h"
#include "cli/step_noise.h"
#include "nccl/profile.h"
#include "parallelism/gpu_rates.h"
#include "parallelism/model_flops.h"
#include "parallelism/software_profile.h"
#include "parallelism/step_run.h"
#include "parallelism/workload.h"
#include "report/output.h"
#include "report/step_report.h"
#include "report/step_trace.h"
#include "report/trace.h"
#include "sim/config_error.h"
#include "topology/cluster.h"
#include "topology/metrics.h"
#include "topology/switch_graph.h"

namespace trainyard {
namespace {

namespace options = boost::program_options;

constexpr std::string_view kExample = R"(
The workload says model, plan, batch, precision and software: a file, or a name in
configs/workloads. A --set whose first key is model, software, precision, plan, batch or overlap
changes the workload; any other the cluster.

Examples:
  trainyard step --cluster dgx-a100 --nodes 128 --workload gpt-3-175b
  trainyard step --cluster superpod-h100 --nodes 8 --workload mixtral-8x7b --set plan.expert=8
  trainyard step --cluster dgx-h100 --workload my-job.yaml --set batch.micro=2 --format json
  trainyard step --cluster dgx-a100 --nodes 128 --workload gpt-3-175b --method graph \
      --trace step.json
  trainyard step --cluster dgx-h100 --workload schedule.goal
)";

constexpr std::array<std::string_view, 7> kWorkloadKeys{"model", "software", "precision", "plan",
                                                        "batch", "overlap",  "routing"};

struct Request {
  std::string cluster;
  std::string workload;
  ClusterOverrides overrides;
  std::vector<std::string> workload_settings;
  bool is_nccl = true;
  Fidelity fidelity = Fidelity::Flow;
  bool has_engine = false;  // With NCCL: it runs over that fidelity between nodes.
  Format format = Format::Table;
  std::optional<std::string> output;
  std::optional<std::string> profile;  // Of NCCL's times, instead of the shipped one.
  StepMethod method = StepMethod::ClosedForms;
  std::optional<SlowRank> slow_rank;
  ComputeJitter jitter;
  bool shares_network = false;
  std::optional<std::string> trace;
};

bool is_of_workload(const std::string& setting) {
  const std::string key = setting.substr(0, setting.find_first_of(".="));
  return std::find(kWorkloadKeys.begin(), kWorkloadKeys.end(), key) != kWorkloadKeys.end();
}

void read_method(const OptionReader& reader, Request& request) {
  constexpr std::array kMethods{StepMethod::ClosedForms, StepMethod::Graph};
  request.method = kMethods[reader.choice("method", {"closed-forms", "graph"})];
  check_distinct_files({{"output", request.output}, {"trace", request.trace}});
  if (request.method == StepMethod::ClosedForms) {
    for (const std::string_view name : {"trace", "slow-rank", "jitter", "traffic"}) {
      if (reader.given(name)) {
        throw ConfigError(fmt::format(
            "--{}: expected --method graph, as closed forms have no time line, found closed-forms",
            name));
      }
    }
  }
  request.shares_network = reader.choice("traffic", {"alone", "shared"}) == 1;
  if (request.shares_network && (request.is_nccl || request.fidelity == Fidelity::Analytical)) {
    throw ConfigError(fmt::format(
        "--traffic shared: expected --runtime plain with --fidelity flow or packet, found {}",
        request.is_nccl ? "nccl" : "analytical"));
  }
}

Request read_request(const OptionReader& reader) {
  Request request{.cluster = reader.required_text("cluster"),
                  .workload = reader.required_text("workload"),
                  .overrides = cluster_overrides(reader),
                  .workload_settings = {},
                  .is_nccl = reader.choice("runtime", {"nccl", "plain"}) == 0,
                  .format = output_format(reader),
                  .output = output_file(reader, "output"),
                  .profile = reader.text("profile"),
                  .slow_rank = read_slow_rank(reader),
                  .jitter = read_jitter(reader),
                  .trace = output_file(reader, "trace")};
  std::vector<std::string>& settings = request.overrides.settings;
  const auto first =
      std::stable_partition(settings.begin(), settings.end(),
                            [](const std::string& text) { return !is_of_workload(text); });
  request.workload_settings.assign(first, settings.end());
  settings.erase(first, settings.end());
  constexpr std::array kFidelities{Fidelity::Flow, Fidelity::Analytical, Fidelity::Packet};
  if (request.is_nccl) {
    const std::size_t chosen = reader.choice("fidelity", {"ports", "flow", "analytical", "packet"});
    if (chosen > 0) {
      request.fidelity = kFidelities[chosen - 1];
      request.has_engine = true;
    }
  } else {
    request.fidelity = kFidelities[reader.choice("fidelity", {"flow", "analytical", "packet"})];
  }
  if (request.profile && !request.is_nccl) {
    throw ConfigError("--profile: expected --runtime nccl, whose times it has, found plain");
  }
  read_method(reader, request);
  return request;
}

std::string method_note(const StepRun& run, bool has_jitter) {
  if (!run.graph) {
    return "closed forms: overlap of gradients and weights with passes, of tensor and context "
           "traffic with products; jitter; optimizer (docs/step.md)";
  }
  const OperationGraph& graph = run.graph->lowered.graph;
  const std::size_t folded = static_cast<std::size_t>(graph.ranks()) / graph.present().size();
  return fmt::format(
      "a graph of {} operations on {} ranks{} (docs/step-graph.md){}", graph.operations().size(),
      graph.present().size(),
      folded > 1 ? fmt::format(", of which each stands for {} that do the same", folded) : "",
      has_jitter ? "" : "; closed forms: jitter");
}

// What groups that are timed one by one do not see: that all of them share the links up.
std::optional<std::string> oversubscription_note(const Cluster& cluster) {
  double most = 0.0;
  for (const TierLoad& tier : tier_loads(SwitchGraph(cluster.topology))) {
    most = std::max(most, tier.most_oversubscription);
  }
  constexpr double kNotWorthTelling = 1.05;
  if (most < kNotWorthTelling) {
    return std::nullopt;
  }
  return fmt::format(
      "switches have {:.2g} times as much below as above them, and groups that work at the same "
      "time share it: --method graph --traffic shared --runtime plain has them on one network",
      most);
}

std::vector<std::string> notes_of(const Request& request, const Workload& workload,
                                  const SoftwareProfile& software, const StepRun& run) {
  std::vector<std::string> notes{
      method_note(run, request.jitter.has_any()),
      request.shares_network
          ? "collectives run as plain rings, all groups at once on one network"
          : fmt::format("collectives run {}, each group alone on the cluster: {} of {} simulated, "
                        "the others are equal ones",
                        request.is_nccl ? "as NCCL would by its event model" : "as plain rings",
                        run.simulated, run.calls)};
  const auto word = [](bool overlaps) { return overlaps ? "beside computation" : "exposed"; };
  notes.push_back(
      fmt::format("software {}: attention {}, {} operators; tensor traffic {}, data "
                  "traffic {}, transfers between stages {}",
                  software.name, software.attention, software.fusion, word(run.overlap.tensor),
                  word(run.overlap.data), word(run.overlap.pipeline)));
  const auto noise = describe_noise(request.slow_rank, request.jitter);
  if (noise && run.usual_time) {
    notes.push_back(
        fmt::format("{}: without it the step takes {:.4f} s", *noise, run.usual_time->seconds()));
  }
  if (!run.beyond_profile.empty()) {
    notes.push_back(fmt::format("beyond what the profile was fitted to: {}",
                                fmt::join(run.beyond_profile, "; ")));
  }
  notes.push_back(run.memory_verdict);
  const bool has_experts =
      std::any_of(workload.model.layers.begin(), workload.model.layers.end(),
                  [](const ModelLayer& layer) { return layer.experts.has_value(); });
  if (has_experts) {
    notes.emplace_back("tokens are spread evenly over experts");
  }
  return notes;
}

StepReport predict(const Request& request, spdlog::logger& log) {
  const Catalogue catalogue = load_default_catalogue();
  const std::filesystem::path configs = configs_folder();
  const Cluster cluster =
      load_cluster(find_config("clusters", request.cluster), catalogue, request.overrides);
  log_warnings(log, cluster.warnings);
  const Workload workload =
      load_workload(find_config("workloads", request.workload), configs / "workloads" / "models",
                    request.workload_settings);
  const SoftwareProfile software =
      SoftwareProfile::load(find_config("software", workload.software));
  const GpuRates rates = GpuRates::load(configs / "hardware" / "gpu-rates.yaml");
  const nccl::Profile profile =
      nccl::Profile::load(request.profile ? std::filesystem::path(*request.profile)
                                          : configs / "nccl" / "profile.yaml");
  std::optional<Fidelity> engine;
  if (request.has_engine) {
    engine = request.fidelity;
  }
  const StepRun run = run_workload(cluster, workload, software,
                                   {.catalogue = catalogue,
                                    .rates = rates,
                                    .nccl = request.is_nccl ? &profile : nullptr,
                                    .fidelity = request.fidelity,
                                    .engine = engine,
                                    .method = request.method,
                                    .slow_rank = request.slow_rank,
                                    .jitter = request.jitter,
                                    .shares_network = request.shares_network});
  if (request.trace && run.graph) {
    TraceRecorder recorder;
    record_step(*run.graph, recorder);
    write_file(*request.trace, chrome_trace(recorder));
  }
  StepReport report{
      .cluster = cluster.name,
      .workload = workload.name,
      .model = workload.model.title,
      .software = software.name,
      .precision = std::string(to_string(workload.precision)),
      .runtime = request.is_nccl ? "nccl" : "plain",
      .fidelity = request.is_nccl && !engine ? "" : std::string(to_string(request.fidelity)),
      .plan = run.plan,
      .step = run.step,
      .flops_of_token = training_flops(workload.model, run.plan.sequence, FlopsConvention::Model),
      .convention = FlopsConvention::Model,
      .peak = run.peak,
      .memory = run.memory,
      .memory_size = run.memory_size,
      .notes = {}};
  report.notes = notes_of(request, workload, software, run);
  if (const auto note = request.shares_network ? std::nullopt : oversubscription_note(cluster)) {
    report.notes.push_back(*note);
  }
  add_estimate_note(cluster, report.notes);
  return report;
}

}  // namespace

options::options_description step_options() {
  options::options_description all("Options");
  const auto text = [](const char* name) {
    return options::value<std::string>()->value_name(name);
  };
  add_cluster_options(all);
  auto add = all.add_options();
  add("workload", text("NAME|FILE"),
      "the job: a file, or a name in configs/workloads; or a workload of another tool");
  add_foreign_options(all);
  add("runtime", text("NAME"),
      "of collectives: nccl (the default), as NCCL chooses and runs them; plain, links and "
      "latencies only");
  add("profile", text("FILE"),
      "nccl: constants of the event model, as trainyard calibrate writes them");
  add("fidelity", text("NAME"),
      "nccl: ports (the default), the event model's own, or an engine between nodes: flow, "
      "analytical or packet (slow); plain: flow (the default), or another of these");
  add("method", text("NAME"),
      "closed-forms (the default), or graph: every operation of the step in simulated time");
  add_noise_options(all);
  add("traffic", text("NAME"),
      "with graph: alone (the default), each group has the cluster to itself; shared, every rank "
      "is simulated, with all traffic on one network");
  add("trace", text("FILE"), "with graph: the time line, for Perfetto or chrome://tracing");
  add_output_options(all);
  add_log_option(all);
  return all;
}

int run_step(std::span<const std::string> arguments, std::ostream& out) {
  const options::variables_map values = parse_options("step", arguments, step_options(), {});
  const OptionReader reader("step", values);
  if (reader.given("help")) {
    out << "trainyard step --cluster NAME|FILE --workload NAME|FILE [options]\n\n"
        << step_options() << kExample;
    return 0;
  }
  if (const std::optional<ForeignFormat> format = foreign_format(reader)) {
    return run_foreign_step(reader, *format, out);
  }
  const Request request = read_request(reader);
  spdlog::logger log = make_logger(reader);
  write_output(request.output, render(predict(request, log), request.format), out);
  return 0;
}

}  // namespace trainyard
