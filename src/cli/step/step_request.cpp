// SPDX-License-Identifier: Apache-2.0
#include "cli/step/step_request.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <string_view>

#include "cli/common/long_run_display.h"
#include "cli/step/step_noise.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

void read_method(const OptionReader& reader, std::optional<StepMethod> only, StepRequest& request) {
  constexpr std::array kMethods{StepMethod::ClosedForms, StepMethod::Graph};
  request.method = only ? *only : kMethods[reader.choice("method")];
  check_distinct_files({{"output", request.output},
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
  (void)reader.required_text("workload");
  StepRequest request{.inputs = read_input_names(reader),
                      .runtime = read_runtime(reader),
                      .format = output_format(reader),
                      .output = output_file(reader, "output"),
                      .slow_rank = read_slow_rank(reader),
                      .jitter = read_jitter(reader),
                      .trace = output_file(reader, "trace"),
                      .memory = output_file(reader, "memory"),
                      .report = html_target(reader),
                      .costs = read_cost_options(reader)};
  read_method(reader, only, request);
  return request;
}

StepRun run_step_inputs(const StepRequest& request, const Inputs& inputs) {
  return run_step_inputs(request, inputs.catalogue, inputs.workload, inputs.machine);
}

StepTables step_tables(const StepRequest& request, const Catalogue& catalogue,
                       const GpuRates& rates, const nccl::Profile& profile) {
  StepTables tables{.catalogue = catalogue,
                    .rates = rates,
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

StepRun run_step_inputs(const StepRequest& request, const Catalogue& catalogue,
                        const Workload& workload, const MachineModel& machine) {
  return run_workload(machine.cluster, workload, machine.software,
                      step_tables(request, catalogue, machine.rates, machine.nccl));
}

RunInputs step_run_inputs(const StepRequest& request, const Inputs& inputs) {
  const Cluster& cluster = inputs.machine.cluster;
  RunInputs made = run_inputs(cluster, request.inputs.settings());
  made.options = machine_options(cluster, request.inputs.overrides);
  if (request.runtime.nccl) {
    made.options.emplace_back("nccl_version", std::string(to_string(*request.runtime.nccl)));
  }
  const GpuModel& gpu = gpu_of(cluster, inputs.catalogue);
  const auto peak = gpu.peak.find(std::string(row_of(inputs.workload.precision).peak));
  if (peak != gpu.peak.end()) {
    made.resources.emplace_back("flops",
                                fmt::format("{:.4g} TFLOP/s", peak->second.value.teraflops()));
  }
  made.resources.emplace_back(
      "gpu_memory", fmt::format("{:.4g} GB/s", gpu.memory_bandwidth.value.gigabytes_per_second()));
  // Constants of a machine of the user's own are of it as well.
  if (request.inputs.profile) {
    made.resources.emplace_back("profile", *request.inputs.profile);
  }
  if (request.inputs.gpu_rates) {
    made.resources.emplace_back("gpu_rates", *request.inputs.gpu_rates);
  }
  return made;
}

}  // namespace trainyard
