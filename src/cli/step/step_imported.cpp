// SPDX-License-Identifier: Apache-2.0
#include "cli/step/step_imported.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/log.h"
#include "cli/common/long_run_display.h"
#include "cli/common/mixed_options.h"
#include "cli/common/options.h"
#include "cli/common/packet_options.h"
#include "cli/step/step_html.h"
#include "cli/step/step_request.h"
#include "parallelism/run/gpu_kinds.h"
#include "parallelism/trace_import/chakra_trace.h"
#include "parallelism/trace_import/imported_run.h"
#include "parallelism/trace_import/swapped_machine.h"
#include "parallelism/traffic/cluster_times.h"
#include "report/formats/output.h"
#include "report/steps/imported_report.h"
#include "sim/config_error.h"
#include "topology/cluster/cluster.h"

namespace trainyard {
namespace {

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const ImportedFormat format : kImportedFormats) {
    names.emplace_back(to_string(format));
  }
  return names;
}

std::int64_t compute_ppm_of(const OptionReader& reader) {
  const std::optional<std::string> text = reader.text("compute-scale");
  if (!text) {
    return 1'000'000;
  }
  const std::optional<double> factor = parse_number<double>(*text);
  if (!factor || !(*factor >= 0.001 && *factor <= 1000.0)) {
    fail_option("compute-scale", "a factor from 0.001 to 1000", *text);
  }
  return std::llround(*factor * 1e6);
}

// A goal file has messages alone, nothing that NCCL would run; all of them share the network.
Runtime read_runtime_of(const OptionReader& reader, ImportedFormat format) {
  if (format != ImportedFormat::Goal) {
    return read_runtime(reader);
  }
  if (const auto name = reader.text("runtime"); name.value_or("plain") != "plain") {
    fail_option("runtime", "plain (as a goal file has messages but no collectives)", *name);
  }
  if (reader.given("profile")) {
    throw ConfigError("--profile: expected collectives, whose times it has, found a goal file");
  }
  Runtime runtime{.nccl = {}, .engine = read_engine(reader).value_or(Fidelity::Flow)};
  runtime.extras = read_network_extras(reader);
  const bool is_analytical = runtime.engine == Fidelity::Analytical;
  runtime.shares_network =
      reader.given("traffic") ? reader.word("traffic") == "shared" : !is_analytical;
  read_sharing(reader, runtime);
  return runtime;
}

StepRequest read_request(const OptionReader& reader, ImportedFormat format) {
  refuse_closed_forms(reader, fmt::format("a {} file", to_string(format)));
  if (reader.given("gpu-rates")) {
    throw ConfigError(fmt::format(
        "--gpu-rates: expected a workload whose kernels are timed here, found a {} file, which has "
        "their times",
        to_string(format)));
  }
  if (reader.given("nccl-version")) {
    throw ConfigError(
        fmt::format("--nccl-version: expected a workload in YAML, found a {} file, "
                    "whose collectives are planned as NCCL {}",
                    to_string(format), to_string(nccl::kNewestVersion)));
  }
  refuse_calls(reader,
               fmt::format("a {} file, whose calls are of no such kind", to_string(format)));
  StepRequest request{.inputs = read_input_names(reader),
                      .runtime = read_runtime_of(reader, format),
                      .compute_ppm = compute_ppm_of(reader),
                      .result = result_target(reader),
                      .method = StepMethod::Graph,
                      .slow_rank = read_slow_rank(reader),
                      .jitter = read_jitter(reader),
                      .trace = output_file(reader, "trace"),
                      .comm_groups = reader.text("comm-groups"),
                      .execution_traces = reader.text("execution-traces"),
                      .recorded_on = reader.text("recorded-on")};
  if (request.comm_groups && format != ImportedFormat::Chakra) {
    throw ConfigError(
        fmt::format("--comm-groups: expected chakra traces, found a {} file", to_string(format)));
  }
  if (request.execution_traces && format != ImportedFormat::Kineto) {
    throw ConfigError(
        fmt::format("--execution-traces: expected profiles, found a {} file", to_string(format)));
  }
  if (request.recorded_on && format != ImportedFormat::Kineto) {
    throw ConfigError(
        fmt::format("--recorded-on: expected profiles, whose kernels have names, found a {} file",
                    to_string(format)));
  }
  check_distinct_files({{"output", request.result.output},
                        {"report", reader.text("report")},
                        {"trace", request.trace}});
  // The cluster refuses settings of workloads, of which this one has none.
  request.inputs.overrides.settings = request.inputs.settings();
  request.inputs.workload_settings.clear();
  return request;
}

// Rates of kernels in 16 bits, with the software that says least.
ComputeRates usual_rates(const GpuModel& gpu) {
  return compute_rates(gpu, load_gpu_rates(std::nullopt), load_software("pytorch-native"),
                       Precision::Fp16);
}

SwapFactors swap_factors_of(const std::string& recorded_on, const Cluster& cluster) {
  const auto& gpus = load_default_catalogue().gpus();
  const auto found = gpus.find(recorded_on);
  if (found == gpus.end()) {
    std::vector<std::string> names;
    for (const auto& [name, gpu] : gpus) {
      names.push_back(name);
    }
    fail_option("recorded-on", fmt::format("a GPU of the catalogue: {}", fmt::join(names, ", ")),
                recorded_on);
  }
  return swap_factors(usual_rates(found->second),
                      usual_rates(gpu_of(cluster, "profiles that were recorded on another")));
}

GraphRunOptions run_options(const StepRequest& request, const ImportedWorkload& workload,
                            const std::optional<SwapFactors>& swap) {
  const int ranks = workload.graph.ranks();
  GraphRunOptions options;
  options.compute_ppm.assign(static_cast<std::size_t>(ranks), request.compute_ppm);
  if (request.slow_rank) {
    if (!workload.graph.has_rank(request.slow_rank->rank)) {
      throw ConfigError(
          fmt::format("--slow-rank: expected a rank that is in the workload, found {}",
                      request.slow_rank->rank));
    }
    const __int128 product = static_cast<__int128>(request.compute_ppm) * request.slow_rank->ppm;
    options.compute_ppm[static_cast<std::size_t>(request.slow_rank->rank)] =
        static_cast<std::int64_t>(product / 1'000'000);
  }
  if (request.jitter.has_any()) {
    options = with_jitter(std::move(options), request.jitter, workload.graph);
  }
  if (swap) {
    options.operation_ppm = swapped_ppm(workload.graph, *swap, std::move(options.operation_ppm));
  }
  return options;
}

std::string swap_note(const std::string& recorded_on, const SwapFactors& factors) {
  const auto factor = [&](KernelKind kind) {
    return static_cast<double>(factors[static_cast<std::size_t>(kind)]) / 1e6;
  };
  return fmt::format(
      "computation was recorded on {}: here products take {:.3f}, attention {:.3f} and other "
      "kernels {:.3f} of its time, by the rates of both in 16 bits; copies to and from the host "
      "and "
      "gaps take the same",
      recorded_on, factor(KernelKind::Product), factor(KernelKind::Attention),
      factor(KernelKind::Memory));
}

std::vector<std::string> notes_of(const StepRequest& request, const GraphedRun& run,
                                  const std::optional<SwapFactors>& swap) {
  std::vector<std::string> notes;
  if (swap) {
    notes.push_back(swap_note(*request.recorded_on, *swap));
  }
  if (request.runtime.shares_network) {
    notes.emplace_back("all traffic at once on one network");
    add_network_notes(request, run.packets, run.extras, notes);
  } else {
    notes.push_back(fmt::format(
        "collectives and messages each alone on the cluster{}: {} of {} simulated, the others are "
        "equal ones",
        request.runtime.nccl ? ", collectives as NCCL would run them by its event model" : "",
        run.simulated, run.calls));
  }
  if (const auto noise = describe_noise(request.slow_rank, request.jitter)) {
    notes.push_back(*noise);
  }
  if (request.compute_ppm != 1'000'000) {
    notes.push_back(fmt::format("computation takes {} times as long as recorded",
                                static_cast<double>(request.compute_ppm) / 1e6));
  }
  return notes;
}

// A folded graph is read again with all of its ranks, if these have not too many operations.
std::vector<TierVolume> volumes_of_imported(const StepRequest& request, const Cluster& cluster,
                                            const ImportedWorkload& workload,
                                            const std::function<ImportedWorkload()>& read_unfolded,
                                            const nccl::Profile& profile) {
  constexpr std::size_t kMaxOperations = std::size_t{1} << 20;
  const auto purpose = [&](StepPart part) { return imported_part_name(workload.format, part); };
  const OperationGraph& graph = workload.graph;
  if (!graph.is_folded()) {
    return volumes_of(request, cluster, graph, profile, purpose);
  }
  const std::size_t operations = graph.operations().size() / graph.present().size();
  if (operations * static_cast<std::size_t>(graph.ranks()) > kMaxOperations) {
    return {};
  }
  return volumes_of(request, cluster, read_unfolded().graph, profile, purpose);
}

void warn(const ImportedWorkload& workload, spdlog::logger& log) {
  for (const std::string& each : workload.left_out) {
    log.warn("left out: " + each);
  }
  const auto operations = workload.graph.operations();
  const bool has_traffic =
      std::any_of(operations.begin(), operations.end(), [](const GraphOperation& operation) {
        // A message without bytes still takes the latency of its way.
        return operation.kind == GraphOperationKind::Send || operation.call.size > Bytes();
      });
  if (!has_traffic) {
    log.warn("the workload sends nothing: no property of the cluster has an effect");
  }
}

}  // namespace

Options imported_options() {
  static const std::string format_help =
      "of a workload of another tool (docs/inputs/imported-workloads.md), if its name and first "
      "word do not say it: " +
      alternatives(format_names());
  static const std::string format_choices = fmt::format("{}", fmt::join(format_names(), "|"));
  return {
      {"workload-format", "NAME", format_help, {.choices = format_choices}},
      {"comm-groups", "FILE",
       "with chakra traces: ranks of process groups, as ASTRA-sim's comm_group.json has them",
       kInput},
      {"compute-scale", "FACTOR",
       "with such a workload: computation takes so many times as long as recorded"},
      {"execution-traces", "PATH",
       "with profiles: execution traces of PyTorch, one for each rank, that say what kernels of "
       "NCCL without a name for their collective do",
       kInput},
      {"recorded-on",
       "GPU",
       "with profiles: the GPU of the catalogue on which they were recorded; computation is "
       "scaled by the rates of the cluster's GPU over its",
       {.names = "gpus"}}};
}

std::optional<ImportedFormat> imported_format(const OptionReader& reader) {
  if (reader.given("workload-format")) {
    return kImportedFormats.at(reader.choice("workload-format"));
  }
  const std::optional<std::string> workload = reader.text("workload");
  const std::optional<ImportedFormat> format =
      workload ? recognise_imported(*workload) : std::nullopt;
  for (const std::string_view name :
       {"compute-scale", "comm-groups", "execution-traces", "recorded-on"}) {
    if (!format && reader.given(name)) {
      throw ConfigError(fmt::format(
          "--{}: expected a workload of another tool, found one of Trainyard's own", name));
    }
  }
  return format;
}

int run_imported_step(const OptionReader& reader, ImportedFormat format, std::ostream& out) {
  const StepRequest request = read_request(reader, format);
  spdlog::logger log = make_logger(reader);
  const Cluster cluster = load_cluster_inputs(request.inputs, log);
  const std::vector<int> servers = servers_of_gpus(cluster);
  const bool is_folded =
      !request.runtime.shares_network && !request.jitter.has_any() && !request.slow_rank;
  ImportedTarget target{.server_of_gpu = servers,
                        .folding = is_folded ? Folding::Folded : Folding::Unfolded};
  if (request.comm_groups) {
    target.groups =
        read_comm_groups({.name = *request.comm_groups,
                          .rank = {},
                          .text = read_file(*request.comm_groups, std::size_t{64} << 20U)});
  }
  if (request.execution_traces) {
    target.execution_traces = read_imported_files(*request.execution_traces, format);
  }
  const std::vector<ImportedFile> files = read_imported_files(request.inputs.workload, format);
  for (const ImportedFile& file : files) {
    check_not_read({"report", reader.text("report")}, reader.command(), "workload", file.name);
    check_not_read({"output", request.result.output}, reader.command(), "workload", file.name);
    check_not_read({"trace", request.trace}, reader.command(), "workload", file.name);
  }
  const ImportedWorkload workload = read_imported(files, format, target);
  warn(workload, log);
  const nccl::Profile profile = load_profile(request.inputs.profile);
  const std::optional<SwapFactors> swap =
      request.recorded_on ? std::optional(swap_factors_of(*request.recorded_on, cluster))
                          : std::nullopt;
  const GraphedRun run = [&] {
    const LongRunDisplay display("step", &log);
    return run_imported(cluster, workload, step_tables(request, no_rates(), profile),
                        run_options(request, workload, swap));
  }();
  write_trace(request, workload.graph, run.result);
  ImportedReport report{.setup = setup_of(request, cluster, request.inputs.workload,
                                          static_cast<int>(servers.size())),
                        .compute_scale = static_cast<double>(request.compute_ppm) / 1e6,
                        .source = &workload,
                        .run = &run,
                        .volumes = volumes_of_imported(
                            request, cluster, workload,
                            [&] {
                              ImportedTarget all = target;
                              all.folding = Folding::Unfolded;
                              return read_imported(files, format, all);
                            },
                            profile),
                        .notes = notes_of(request, run, swap),
                        .inputs = inputs_of_run(cluster, request.inputs),
                        .estimates = cluster.estimates};
  if (const auto ranks = static_cast<std::size_t>(workload.graph.ranks());
      ranks < cluster.gpus.size()) {
    report.notes.push_back(fmt::format("ranks are the first {} of {} GPUs; the others do nothing",
                                       ranks, cluster.gpus.size()));
  }
  add_part_notes(cluster, request.inputs, report.notes);
  const auto counts =
      counts_of(request, cluster, run.simulated, workload.graph.operations().size());
  const Document document = with_effects(reader, document_of(report), counts);
  write_result(request.result, document, out, [&] {
    const PartName name = [format](StepPart part) { return imported_part_name(format, part); };
    return graph_html(workload.graph, run.result, name, document);
  });
  return 0;
}

}  // namespace trainyard
