// SPDX-License-Identifier: Apache-2.0
// The request that the command line of `trainyard step` makes, also for GPUs that do not all
// compute equally fast, and its inputs.
#pragma once

#include <spdlog/logger.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibration/fit/time_band.h"
#include "cli/common/cost_options.h"
#include "cli/common/effects.h"
#include "cli/common/html_output.h"
#include "cli/common/inputs.h"
#include "cli/common/options.h"
#include "cli/common/runtime.h"
#include "parallelism/graph/graph_jitter.h"
#include "parallelism/run/step_run.h"
#include "parallelism/run/tier_volumes.h"
#include "parallelism/traffic/link_traffic.h"
#include "report/formats/document.h"
#include "report/formats/table.h"
#include "report/steps/step_entries.h"

namespace trainyard {

struct StepRequest {
  InputNames inputs;
  Runtime runtime = {};
  std::int64_t compute_ppm = 1'000'000;  // How long computation of a trace takes.
  ResultTarget result = {};
  StepMethod method = StepMethod::ClosedForms;
  std::optional<SlowRank> slow_rank;
  ComputeJitter jitter;
  std::optional<std::string> trace;
  std::optional<std::string> memory = {};  // The file for the memory of each rank, over its passes.
  std::optional<CostRequest> costs = {};
  std::optional<std::string> comm_groups = {};       // The file beside Chakra traces.
  std::optional<std::string> execution_traces = {};  // PyTorch's, beside profiles.
  std::optional<std::string> recorded_on = {};       // The GPU on which a profile was recorded.
};

// `reader` has the options of step_command(); `only` represents what --method would say. Throws
// ConfigError.
[[nodiscard]] StepRequest read_step_request(const OptionReader& reader,
                                            std::optional<StepMethod> only = std::nullopt);

// Refuses --method closed-forms for `what`, which has none.
void refuse_closed_forms(const OptionReader& reader, std::string_view what);

// Refuses --packets calls=KIND for `what`, whose calls have no kinds.
void refuse_calls(const OptionReader& reader, std::string_view what);

// Reads that of `what`, which has no closed forms, so that what needs a graph needs no --method.
[[nodiscard]] StepRequest read_graph_request(const OptionReader& reader, std::string_view what);
// Whether --workload is of that kind; false for what cannot be found or read.
[[nodiscard]] bool is_of_kind(const OptionReader& reader, std::string_view kind);
// How collectives ran, what made the step longer than usual, and what is beyond the profile.
[[nodiscard]] std::vector<std::string> graph_notes(const StepRequest& request,
                                                   const LoweredRun& run);

// Notes how packets fared where they were not simulated as usual, and what else was asked of the
// network.
void add_network_notes(const StepRequest& request, const std::optional<PacketStats>& packets,
                       const ExtraResults& extras, std::vector<std::string>& notes);

// Returns the settings of a run from the request. `rates` and `profile` must outlive the result.
[[nodiscard]] StepTables step_tables(const StepRequest& request, const GpuRates& rates,
                                     const nccl::Profile& profile);

// With the workload and the machine of `inputs`, or with others in their place.
[[nodiscard]] StepRun run_step_inputs(const StepRequest& request, const Inputs& inputs);
// The same, and says that it goes on where it takes longer than two seconds.
[[nodiscard]] StepRun watched_run(const StepRequest& request, const Inputs& inputs,
                                  spdlog::logger& log);
[[nodiscard]] StepRun run_step_inputs(const StepRequest& request, const Workload& workload,
                                      const MachineModel& machine);

// Returns the inputs for the report: all settings, and the resources of the cluster or of the whole
// machine.
[[nodiscard]] RunInputs step_run_inputs(const StepRequest& request, const Cluster& cluster);
[[nodiscard]] RunInputs step_run_inputs(const StepRequest& request, const Inputs& inputs);

// Says for each kind of GPU of which no kernel was measured whose rates it takes.
[[nodiscard]] std::vector<std::string> unmeasured_notes(const GpuRates& rates,
                                                        const Cluster& cluster);

// The interval of a step of whose operators nobody measured a kernel on any GPU, no faster than its
// operations (the share `mfu` of the peak), with a note; none of a step with a slow rank or jitter.
[[nodiscard]] std::optional<TimeInterval> unmeasured_interval(const StepRequest& request,
                                                              SimTime time, double mfu,
                                                              std::string_view operators,
                                                              std::vector<std::string>& notes);

// Writes the time line of a graph, if the request names a file for it.
void write_trace(const StepRequest& request, const OperationGraph& graph,
                 const GraphResult& result);

// Returns what the step puts on links; nothing where it is not counted: for more than
// kMaxCountedRanks.
[[nodiscard]] std::optional<std::vector<LinkTraffic>> counted_traffic(const StepRequest& request,
                                                                      const Inputs& inputs,
                                                                      const StepRun& run);
// The same of a graph of operations, by tier; empty where it is not counted (graph_link_traffic.h).
[[nodiscard]] std::vector<TierVolume> volumes_of(
    const StepRequest& request, const Cluster& cluster, const OperationGraph& graph,
    const nccl::Profile& profile, const std::function<std::string_view(StepPart)>& purpose);

// The same of such a graph, link by link; nothing where it is not counted.
[[nodiscard]] std::optional<std::vector<LinkTraffic>> counted_traffic(
    const StepRequest& request, const Cluster& cluster, const OperationGraph& graph,
    const nccl::Profile& profile, const std::function<std::string_view(StepPart)>& purpose);

// Returns what a run did that simulated so many collectives and messages and has so many operations
// in its graph; nothing where all traffic is on an engine.
[[nodiscard]] std::optional<RunCounts> counts_of(const StepRequest& request, const Cluster& cluster,
                                                 std::size_t simulated, std::size_t operations);

// A workload that has no closed forms: what is run of it, on a machine that may be another one.
struct LoweredJob {
  using Run = std::function<LoweredRun(const MachineModel& machine)>;
  std::string name = {};  // Name of the workload.
  MachineModel machine;
  Run run;
  std::string_view (*part_name)(StepPart part) = nullptr;
  std::vector<std::pair<std::string, Run>> settings = {};  // With another setting each.
};

// Returns what the report says first, but for what the workload alone has.
[[nodiscard]] StepSetup setup_of(const StepRequest& request, const Cluster& cluster,
                                 const std::string& workload, int gpus);

// Returns the report of a workload that has no closed forms, without notes.
template <typename Report, typename Workload, typename Run>
Report lowered_report(const StepRequest& request, const Cluster& cluster, const std::string& kind,
                      const std::string& software, const Workload& workload, const Run& run) {
  Report report{.setup = setup_of(request, cluster, workload.name, run.gpus()),
                .workload = &workload,
                .run = &run,
                .inputs = step_run_inputs(request, cluster),
                .estimates = cluster.estimates};
  report.setup.kind = kind;
  report.setup.model = workload.model.title;
  report.setup.software = software;
  report.setup.precision = to_string(workload.precision);
  return report;
}

// --slow-rank, --jitter, --seed.
[[nodiscard]] Options noise_options();

// Throw ConfigError, one line.
[[nodiscard]] std::optional<SlowRank> read_slow_rank(const OptionReader& reader);
[[nodiscard]] ComputeJitter read_jitter(const OptionReader& reader);

// Describes what makes the step longer than usual, for a note; nothing: nothing does.
[[nodiscard]] std::optional<std::string> describe_noise(const std::optional<SlowRank>& slow,
                                                        const ComputeJitter& jitter);

}  // namespace trainyard
