// SPDX-License-Identifier: Apache-2.0
#include "cli/step/step_request.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "calibration/training/step_intervals.h"
#include "cli/common/common.h"
#include "cli/common/long_run_display.h"
#include "cli/common/mixed_options.h"
#include "cli/common/packet_options.h"
#include "parallelism/graph/graph_link_traffic.h"
#include "parallelism/run/gpu_kinds.h"
#include "report/formats/output.h"
#include "report/formats/trace.h"
#include "report/steps/step_trace.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr double kPartsOfOne = 1e6;

CallRuntime call_runtime(const StepRequest& request, const nccl::Profile& profile) {
  return request.runtime.nccl ? CallRuntime{.nccl = &profile, .version = *request.runtime.nccl}
                              : CallRuntime();
}

// Returns what one step carried, the mean of all.
std::vector<LinkTraffic> traffic_of_servers(const ParameterServerRun& run) {
  std::vector<LinkTraffic> traffic;
  for (const LinkUse& use : run.link_use) {
    const Bytes bytes(use.bytes.count() / run.steps);
    traffic.push_back({.link = use.link, .parts = {{.purpose = "data", .bytes = bytes}}});
  }
  return traffic;
}

// "KEY=VALUE", both not empty.
std::optional<std::pair<std::string_view, std::string_view>> split_pair(std::string_view text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string_view::npos || sign == 0 || sign + 1 == text.size()) {
    return std::nullopt;
  }
  return std::pair(text.substr(0, sign), text.substr(sign + 1));
}

}  // namespace

void refuse_closed_forms(const OptionReader& reader, std::string_view what) {
  if (const auto method = reader.text("method"); method.value_or("graph") != "graph") {
    fail_option("method", fmt::format("graph (as there are no closed forms for {})", what),
                *method);
  }
}

StepRequest read_step_request(const OptionReader& reader, std::optional<StepMethod> only) {
  (void)reader.required_text("cluster");
  require_job(reader);
  StepRequest request{.inputs = read_input_names(reader),
                      .runtime = read_runtime(reader),
                      .result = result_target(reader),
                      .slow_rank = read_slow_rank(reader),
                      .jitter = read_jitter(reader),
                      .trace = output_file(reader, "trace"),
                      .memory = output_file(reader, "memory"),
                      .costs = read_cost_options(reader)};
  constexpr std::array kMethods{StepMethod::ClosedForms, StepMethod::Graph};
  request.method = only ? *only : kMethods[reader.choice("method")];
  check_distinct_files({{"output", request.result.output},
                        {"trace", request.trace},
                        {"memory", request.memory},
                        {"report", reader.text("report")}});
  if (request.method == StepMethod::ClosedForms) {
    for (const std::string_view name : {"trace", "slow-rank", "jitter", "traffic"}) {
      if (reader.given(name)) {
        throw ConfigError(fmt::format(
            "--{}: expected --method graph, as closed forms have no time line, found closed-forms",
            name));
      }
    }
  }
  return request;
}

void refuse_calls(const OptionReader& reader, std::string_view what) {
  for (const std::string& text : reader.texts("packets")) {
    if (text.starts_with("calls=")) {
      fail_option("packets", fmt::format("link=A,B, device=NAME or crowd=N for {}", what), text);
    }
  }
}

StepRequest read_graph_request(const OptionReader& reader, std::string_view what) {
  for (const std::string_view name : {"model", "memory", "costs", "prices"}) {
    if (reader.given(name)) {
      throw ConfigError(
          fmt::format("--{}: expected a workload of a transformer, found one of {}", name, what));
    }
  }
  refuse_closed_forms(reader, what);
  refuse_calls(reader, fmt::format("{}, whose calls are of no such kind", what));
  return read_step_request(reader, StepMethod::Graph);
}

bool is_of_kind(const OptionReader& reader, std::string_view kind) {
  const std::optional<std::string> workload = reader.text("workload");
  try {
    return workload && is_workload_of(find_workload(*workload), kind);
  } catch (const ConfigError&) {
    return false;  // The reader of the workload says later what is wrong with it.
  }
}

void write_trace(const StepRequest& request, const OperationGraph& graph,
                 const GraphResult& result) {
  if (request.trace) {
    TraceRecorder recorder;
    record_graph(graph, result, recorder);
    write_file(*request.trace, chrome_trace(recorder));
  }
}

std::vector<std::string> graph_notes(const StepRequest& request, const LoweredRun& run) {
  std::vector<std::string> notes;
  if (request.runtime.shares_network) {
    notes.emplace_back("collectives run as plain rings, all at once on one network");
    add_network_notes(request, run.packets, run.extras, notes);
  } else if (run.calls > 0) {
    notes.push_back(
        fmt::format("collectives run {}, each alone: {} of {} simulated, the others are equal ones",
                    request.runtime.how(), run.simulated, run.calls));
  }
  notes.insert(notes.end(), request.runtime.notes.begin(), request.runtime.notes.end());
  if (const auto noise = describe_noise(request.slow_rank, request.jitter)) {
    notes.push_back(fmt::format("{}: without it the step takes {:.4f} ms", *noise,
                                1e3 * run.usual_time.value_or(SimTime()).seconds()));
  }
  if (!run.beyond_profile.empty()) {
    notes.push_back(fmt::format("beyond what the profile was fitted to: {}",
                                fmt::join(run.beyond_profile, "; ")));
  }
  return notes;
}

void add_network_notes(const StepRequest& request, const std::optional<PacketStats>& packets,
                       const ExtraResults& extras, std::vector<std::string>& notes) {
  if (packets) {
    notes.push_back("packets: " + describe(request.runtime.packet));
  }
  if (packets &&
      (request.runtime.packet.options.fast_forward != FastForward::Off || extras.mixed)) {
    notes.push_back("packets: " + describe(*packets));
  }
  for (std::string& note : extra_notes(extras, packets.value_or(PacketStats()))) {
    notes.push_back(std::move(note));
  }
}

StepRun run_step_inputs(const StepRequest& request, const Inputs& inputs) {
  return run_step_inputs(request, inputs.workload, inputs.machine);
}

StepTables step_tables(const StepRequest& request, const GpuRates& rates,
                       const nccl::Profile& profile) {
  StepTables tables{.rates = rates,
                    .method = request.method,
                    .slow_rank = request.slow_rank,
                    .jitter = request.jitter};
  request.runtime.apply(profile, tables);
  return tables;
}

StepRun watched_run(const StepRequest& request, const Inputs& inputs, spdlog::logger& log) {
  const LongRunDisplay display("step", &log);
  return run_step_inputs(request, inputs);
}

StepRun run_step_inputs(const StepRequest& request, const Workload& workload,
                        const MachineModel& machine) {
  return run_workload(machine.cluster, workload, machine.software,
                      step_tables(request, machine.rates, machine.nccl));
}

std::vector<std::string> unmeasured_notes(const GpuRates& rates, const Cluster& cluster) {
  std::vector<std::string> notes;
  for (const GpuModel* const gpu : gpu_kinds(cluster).models) {
    if (!rates.are_measured(*gpu)) {
      notes.push_back(
          fmt::format("no kernel of {} was measured: shares of its peak and bandwidth are those of "
                      "{} (docs/accuracy/intervals.md)",
                      gpu->title, fmt::join(rates.taken_from(*gpu), ", ")));
    }
  }
  return notes;
}

std::optional<TimeInterval> unmeasured_interval(const StepRequest& request, SimTime time,
                                                double mfu, std::string_view operators,
                                                std::vector<std::string>& notes) {
  if (request.slow_rank || request.jitter.has_any()) {
    return std::nullopt;
  }
  notes.push_back(
      fmt::format("nine measured steps in ten of transformers were within such bounds, of "
                  "generations of GPUs that took the shares of the others; no kernel of {} was "
                  "measured",
                  operators));
  const StepIntervals intervals = StepIntervals::load(step_intervals_file());
  return bounded(around(time, intervals.band({.is_measured = false})), time,
                 SimTime(std::llround(time.real_picoseconds() * mfu)));
}

RunInputs step_run_inputs(const StepRequest& request, const Cluster& cluster) {
  RunInputs made = inputs_of_run(cluster, request.inputs);
  if (request.runtime.nccl) {
    made.options.emplace_back("nccl_version", to_string(*request.runtime.nccl));
  }
  return made;
}

RunInputs step_run_inputs(const StepRequest& request, const Inputs& inputs) {
  const Cluster& cluster = inputs.machine.cluster;
  RunInputs made = step_run_inputs(request, cluster);
  std::vector<std::string> peaks;
  std::vector<std::string> rates;
  for (const GpuModel* const gpu : gpu_kinds(cluster).models) {
    const auto peak = gpu->peak.find(std::string(row_of(inputs.workload.precision).peak));
    if (peak != gpu->peak.end()) {
      peaks.push_back(fmt::format("{:.4g} TFLOP/s", peak->second.value.teraflops()));
    }
    rates.push_back(fmt::format("{:.4g} GB/s", gpu->memory_bandwidth.value.gigabytes_per_second()));
  }
  if (!peaks.empty()) {
    made.resources.emplace_back("flops", fmt::format("{}", fmt::join(peaks, ", ")));
  }
  made.resources.emplace_back("gpu_memory", fmt::format("{}", fmt::join(rates, ", ")));
  // Constants of a machine of the user's own are of it as well.
  if (request.inputs.profile) {
    made.resources.emplace_back("profile", *request.inputs.profile);
  }
  if (request.inputs.gpu_rates) {
    made.resources.emplace_back("gpu_rates", *request.inputs.gpu_rates);
  }
  return made;
}

std::optional<std::vector<LinkTraffic>> counted_traffic(const StepRequest& request,
                                                        const Inputs& inputs, const StepRun& run) {
  if (run.servers) {
    return traffic_of_servers(*run.servers);
  }
  if (run.plan.ranks() > kMaxCountedRanks) {
    return std::nullopt;
  }
  return step_link_traffic(inputs.machine.cluster, inputs.workload.model, run.plan,
                           inputs.machine.software, call_runtime(request, inputs.machine.nccl));
}

std::optional<std::vector<LinkTraffic>> counted_traffic(
    const StepRequest& request, const Cluster& cluster, const OperationGraph& graph,
    const nccl::Profile& profile, const std::function<std::string_view(StepPart)>& purpose) {
  return graph_link_traffic(cluster, graph, call_runtime(request, profile), purpose);
}

std::vector<TierVolume> volumes_of(const StepRequest& request, const Cluster& cluster,
                                   const OperationGraph& graph, const nccl::Profile& profile,
                                   const std::function<std::string_view(StepPart)>& purpose) {
  const auto traffic = counted_traffic(request, cluster, graph, profile, purpose);
  return traffic ? tier_volumes(LinkResources(cluster.topology, cluster.routing.fabric), *traffic)
                 : std::vector<TierVolume>();
}

std::optional<RunCounts> counts_of(const StepRequest& request, const Cluster& cluster,
                                   std::size_t simulated, std::size_t operations) {
  const Runtime& runtime = request.runtime;
  if (runtime.engine == Fidelity::Packet || (runtime.nccl && runtime.engine) ||
      runtime.shares_network) {
    return std::nullopt;
  }
  const std::size_t gpus = cluster.gpus.size();
  return RunCounts{.gpus = gpus,
                   .communicators = simulated,
                   .rank_calls = simulated * gpus,
                   .events = operations};
}

StepSetup setup_of(const StepRequest& request, const Cluster& cluster, const std::string& workload,
                   int gpus) {
  return {.cluster = cluster.name,
          .workload = workload,
          .gpus = gpus,
          .runtime = std::string(request.runtime.name()),
          .fidelity = request.runtime.engine_name(),
          .shares_network = request.runtime.shares_network,
          .slow_rank = request.slow_rank,
          .jitter = request.jitter};
}

Options noise_options() {
  Option jitter_seed = seed_option("of --jitter (default: 0)");
  jitter_seed.traits.needs = "jitter";  // Nothing else is by chance.
  return {{"slow-rank", "RANK=FACTOR", "with graph: a rank that computes so many times as long"},
          {"jitter", "KIND=SHARE",
           "with graph: computation is longer by chance, by this share on average: ranks, each by "
           "its own share all step long; operations, each single one; may be given for both",
           kRepeated},
          jitter_seed};
}

std::optional<SlowRank> read_slow_rank(const OptionReader& reader) {
  const std::optional<std::string> text = reader.text("slow-rank");
  if (!text) {
    return std::nullopt;
  }
  if (const auto pair = split_pair(*text)) {
    const auto rank = parse_number<int>(pair->first);
    const auto factor = parse_number<double>(pair->second);
    if (rank && factor && *factor >= 0.001 && *factor <= 1000.0) {
      return SlowRank{.rank = *rank, .ppm = std::llround(*factor * kPartsOfOne)};
    }
  }
  fail_option("slow-rank", "RANK=FACTOR, a factor from 0.001 to 1000", *text);
}

ComputeJitter read_jitter(const OptionReader& reader) {
  ComputeJitter jitter;
  for (const std::string& text : reader.texts("jitter")) {
    const auto pair = split_pair(text);
    const auto share = pair ? parse_number<double>(pair->second) : std::nullopt;
    const bool is_of_ranks = pair && pair->first == "ranks";
    if (!share || !(*share >= 1e-6 && *share <= 10.0) ||
        (!is_of_ranks && pair->first != "operations")) {
      fail_option("jitter", "ranks=SHARE or operations=SHARE, a share from 0.000001 to 10", text);
    }
    std::int64_t& ppm = is_of_ranks ? jitter.rank_ppm : jitter.operation_ppm;
    if (ppm != 0) {
      throw ConfigError(fmt::format("--jitter: expected {} once, found it twice", pair->first));
    }
    ppm = std::llround(*share * kPartsOfOne);
  }
  jitter.seed = read_seed(reader).value_or(0);
  return jitter;
}

std::optional<std::string> describe_noise(const std::optional<SlowRank>& slow,
                                          const ComputeJitter& jitter) {
  std::vector<std::string> all;
  const auto share = [](std::int64_t ppm) { return static_cast<double>(ppm) / kPartsOfOne; };
  if (slow) {
    all.push_back(fmt::format("rank {} computes {} times as long as the others", slow->rank,
                              share(slow->ppm)));
  }
  if (jitter.rank_ppm > 0) {
    all.push_back(
        fmt::format("ranks are slower by {:.4g} % on average", 100.0 * share(jitter.rank_ppm)));
  }
  if (jitter.operation_ppm > 0) {
    all.push_back(fmt::format("operations are longer by {:.4g} % on average",
                              100.0 * share(jitter.operation_ppm)));
  }
  if (all.empty()) {
    return std::nullopt;
  }
  return fmt::format("{}{}", fmt::join(all, "; "),
                     jitter.has_any() ? fmt::format(" (seed {})", jitter.seed) : "");
}

}  // namespace trainyard
