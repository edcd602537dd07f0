// SPDX-License-Identifier: Apache-2.0
// The request that the command line of `trainyard step` makes, and its inputs.
#pragma once

#include <spdlog/logger.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/common/cost_options.h"
#include "cli/common/html_output.h"
#include "cli/common/options.h"
#include "hw/parts/catalogue.h"
#include "network/contract/network.h"
#include "parallelism/graph/graph_jitter.h"
#include "parallelism/run/resources.h"
#include "parallelism/run/step_run.h"
#include "parallelism/workload/workload.h"
#include "report/formats/run_inputs.h"
#include "report/formats/table.h"

namespace trainyard {

struct StepRequest {
  std::string cluster;
  std::string workload;
  ClusterOverrides overrides;
  std::vector<std::string> workload_settings;
  bool is_nccl = true;
  nccl::Version nccl_version = kStepVersion;
  std::vector<std::string> nccl_notes = {};  // Remarks on that version for the reader.
  Fidelity fidelity = Fidelity::Flow;
  bool has_engine = false;  // With NCCL: it runs over that fidelity between nodes.
  Format format = Format::Table;
  std::optional<std::string> output;
  std::optional<std::string> profile;    // The file of NCCL's times, instead of the shipped one.
  std::optional<std::string> gpu_rates;  // The file of kernel rates, the same.
  StepMethod method = StepMethod::ClosedForms;
  std::optional<SlowRank> slow_rank;
  ComputeJitter jitter;
  bool shares_network = false;
  std::optional<std::string> trace;
  std::optional<std::string> memory = {};  // The file for the memory of each rank, over its passes.
  std::optional<HtmlTarget> report = {};
  std::optional<CostRequest> costs = {};
};

// Those of --set that are about the workload, in their order; the others stay.
[[nodiscard]] std::vector<std::string> take_workload_settings(ClusterOverrides& overrides);

// `reader` has the options of step_command(); `only` stands for what --method would say. Throws
// ConfigError.
[[nodiscard]] StepRequest read_step_request(const OptionReader& reader,
                                            std::optional<StepMethod> only = std::nullopt);

struct StepInputs {
  Catalogue catalogue;
  Workload workload;
  MachineModel machine;
};

// Reads and checks the files that the request names. Throws ConfigError.
[[nodiscard]] StepInputs load_step_inputs(const StepRequest& request, spdlog::logger& log);

// Returns the settings of a run from the request. `rates` and `profile` must outlive the result.
[[nodiscard]] StepTables step_tables(const StepRequest& request, const Catalogue& catalogue,
                                     const GpuRates& rates, const nccl::Profile& profile);

// With the workload and the machine of `inputs`, or with others in their place.
[[nodiscard]] StepRun run_step_inputs(const StepRequest& request, const StepInputs& inputs);
// The same, and says that it goes on where it takes longer than two seconds.
[[nodiscard]] StepRun watched_run(const StepRequest& request, const StepInputs& inputs,
                                  spdlog::logger& log);
[[nodiscard]] StepRun run_step_inputs(const StepRequest& request, const Catalogue& catalogue,
                                      const Workload& workload, const MachineModel& machine);

// Returns the inputs for the report: all settings, and the resources of the machine.
[[nodiscard]] RunInputs step_run_inputs(const StepRequest& request, const StepInputs& inputs);

}  // namespace trainyard
